//===- Sum.cpp - Sums over processes --------------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Three lines of pieces move on their own: those of others that this process
// adds up, the sums that it sends back, and its values and their sums at each
// other owner. Pieces go in the same order everywhere, which is the order in
// which MPI matches them.
//===----------------------------------------------------------------------===//

#include "runtime/transport/mpi/Sum.h"

#include "runtime/transport/AddValues.h"

#include <algorithm>
#include <cstring>
#include <map>

using namespace penstock::runtime;

MpiSum::MpiSum(AllReduce &sum, const penstock_mpi &mpi, const Job &job, int tag)
    : sum(sum), description(sum.description), mpi(mpi), tag(tag) {
  // 1. Who takes part, with which summands.
  uint32_t count = description.summand_count;
  std::map<int, Peer> peers;
  std::vector<uint32_t> devices;
  isAdded.resize(count);
  for (uint32_t k = 0; k < count; ++k) {
    uint32_t device = description.devices[k];
    int rank = job.rankOfDevice[device];
    Peer &peer = peers.try_emplace(rank).first->second;
    peer.rank = rank;
    isAdded[k] = k == 0 || description.resets[k] != PENSTOCK_SUM_RECEIVES;
    if (isAdded[k])
      peer.adders.push_back(k);
    peer.wantsSum |= description.resets[k] != PENSTOCK_SUM_RESETS;
    if (rank != job.rank)
      continue;
    local.push_back(k);
    if (target < 0 && description.resets[k] != PENSTOCK_SUM_RESETS)
      target = k;
    if (std::find(devices.begin(), devices.end(), device) == devices.end())
      devices.push_back(device);
  }
  localSides = uint32_t(devices.size());

  // 2. Who adds up what.
  uint64_t position = 0, largest = 0;
  for (auto &[rank, peer] : peers) {
    for (uint32_t j = 0; j < description.type_count; ++j) {
      const penstock_tensor &type = description.types[j];
      uint64_t size = type.element == PENSTOCK_F64 ? 8 : 4;
      SumValues values = {type.bytes, size};
      uint64_t begin = values.getBegin(position, peers.size());
      uint64_t end = values.getBegin(position + 1, peers.size());
      for (uint64_t next; begin < end; begin = next) {
        next = std::min(end, begin + kSumPieceBytes / size);
        peer.pieces.push_back({j, begin, next});
        if (rank == job.rank)
          largest = std::max(largest, getBytes(peer.pieces.back()));
      }
    }
    ++position;
  }
  for (auto &[rank, peer] : peers)
    if (rank == job.rank)
      self = std::move(peer);
    else
      others.push_back(std::move(peer));

  // 3. Room.
  buffers.resize(count);
  for (Peer &peer : others) {
    peer.sends.resize(kWindow * self.adders.size());
    peer.gathers.resize(kWindow * peer.adders.size());
    for (uint32_t k : peer.adders)
      buffers[k].resize(kWindow * largest);
  }
  if (target < 0)
    sums.resize(kWindow * largest);
}

uint64_t MpiSum::getBytes() const {
  uint64_t bytes = sums.size();
  for (const auto &buffer : buffers)
    bytes += buffer.size();
  if (sum.areHostAddressable())
    return bytes;
  for (uint32_t j = 0; j < description.type_count; ++j)
    bytes += local.size() * description.types[j].bytes;
  return bytes;
}

uint64_t MpiSum::getBytes(const Piece &piece) const {
  bool isDouble = description.types[piece.type].element == PENSTOCK_F64;
  return (piece.end - piece.begin) * (isDouble ? 8 : 4);
}

/// Where a piece is in a summand of this process.
char *MpiSum::at(uint32_t summand, const Piece &piece) const {
  bool isDouble = description.types[piece.type].element == PENSTOCK_F64;
  void *values =
      copies.empty()
          ? sum.getHost(summand, piece.type)
          : const_cast<char *>(
                copies[summand * description.type_count + piece.type].data());
  return static_cast<char *>(values) + piece.begin * (isDouble ? 8 : 4);
}

/// Where the sum of a piece of this process is.
char *MpiSum::getSum(const Piece &piece, uint64_t slot) {
  return target >= 0 ? at(uint32_t(target), piece)
                     : sums.data() + slot * (sums.size() / kWindow);
}

void MpiSum::send(const void *from, uint64_t bytes, const Peer &peer, int with,
                  Request &request, int &code) {
  if (int failed = mpi.send(from, bytes, peer.rank, with, &request.request))
    code = failed;
  request.isOpen = true;
}

void MpiSum::receive(void *to, uint64_t bytes, const Peer &peer, int with,
                     Request &request, int &code) {
  if (int failed = mpi.receive(to, bytes, peer.rank, with, &request.request))
    code = failed;
  request.isOpen = true;
}

/// True if it is done.
bool MpiSum::test(Request &request, int &code, bool &isMoved) {
  if (!request.isOpen)
    return true;
  int isDone = 0;
  if (int failed = mpi.test(&request.request, &isDone))
    code = failed;
  if (!isDone)
    return false;
  request.isOpen = false;
  return isMoved = true;
}

template <typename T>
static void addElements(const std::vector<const void *> &values, void *result,
                        uint64_t count) {
  addValues<T>(values, 0, count, [&](uint64_t at, const T *sums, uint64_t n) {
    std::memcpy(static_cast<T *>(result) + at, sums, n * sizeof(T));
  });
}

/// Gives the local summands what they get of a sum, which one of them may
/// already have.
void MpiSum::spread(const Piece &piece, const char *result) {
  for (uint32_t k : local) {
    char *to = at(k, piece);
    if (description.resets[k] == PENSTOCK_SUM_RESETS)
      std::memset(to, 0, getBytes(piece));
    else if (to != result)
      std::memcpy(to, result, getBytes(piece));
  }
}

void MpiSum::addPiece(const Piece &piece, uint64_t slot) {
  values.clear();
  for (uint32_t k = 0; k < description.summand_count; ++k) {
    if (!isAdded[k])
      continue;
    const std::vector<char> &buffer = buffers[k];
    values.push_back(buffer.empty()
                         ? at(k, piece)
                         : buffer.data() + slot * (buffer.size() / kWindow));
  }
  char *result = getSum(piece, slot);
  if (description.types[piece.type].element == PENSTOCK_F64)
    addElements<double>(values, result, piece.end - piece.begin);
  else
    addElements<float>(values, result, piece.end - piece.begin);
  spread(piece, result);
}

void MpiSum::copyFromDevices() {
  copies.resize(uint64_t(description.summand_count) * description.type_count);
  for (uint32_t k : local)
    for (uint32_t j = 0; j < description.type_count; ++j) {
      std::vector<char> &copy = copies[k * description.type_count + j];
      copy.resize(description.types[j].bytes);
      sum.download(copy.data(), k, j);
    }
}

void MpiSum::copyToDevices() {
  for (uint32_t k : local)
    for (uint32_t j = 0; j < description.type_count; ++j)
      sum.upload(k, j, copies[k * description.type_count + j].data());
}

/// Begins the next sum when all local devices have posted it, and it is there.
bool MpiSum::begin() {
  if (active || !sum.hasPosted(uint32_t(number + 1) * localSides) ||
      !sum.areReady())
    return false;
  if (!sum.areHostAddressable())
    copyFromDevices();
  active = true;
  gathered = added = 0;
  for (Peer &peer : others)
    peer.sent = peer.received = peer.done = 0;
  return true;
}

/// Posts receives for the pieces of this process.
bool MpiSum::gather(int &code) {
  bool isMoved = false;
  for (; gathered < self.pieces.size() && gathered < added + kWindow;
       ++gathered) {
    const Piece &piece = self.pieces[gathered];
    uint64_t slot = gathered % kWindow;
    for (Peer &peer : others)
      for (size_t i = 0; i < peer.adders.size(); ++i) {
        std::vector<char> &buffer = buffers[peer.adders[i]];
        receive(buffer.data() + slot * (buffer.size() / kWindow),
                getBytes(piece), peer, tag,
                peer.gathers[slot * peer.adders.size() + i], code);
      }
    isMoved = true;
  }
  return isMoved;
}

/// Adds up pieces that have arrived, and sends the sums.
bool MpiSum::addUp(int &code) {
  bool isMoved = false;
  while (added < gathered) {
    uint64_t slot = added % kWindow;
    bool isReady = true;
    for (Peer &peer : others) {
      for (size_t i = 0; i < peer.adders.size(); ++i)
        isReady &=
            test(peer.gathers[slot * peer.adders.size() + i], code, isMoved);
      // The sum of an earlier piece may still be on its way.
      isReady &= test(peer.scatters[slot], code, isMoved);
    }
    if (!isReady)
      break;
    const Piece &piece = self.pieces[added];
    addPiece(piece, slot);
    for (Peer &peer : others)
      if (peer.wantsSum)
        send(getSum(piece, slot), getBytes(piece), peer, tag + 1,
             peer.scatters[slot], code);
    ++added;
    isMoved = true;
  }
  for (Peer &peer : others)
    for (Request &request : peer.scatters)
      test(request, code, isMoved);
  return isMoved;
}

/// Sends the values of this process to the owner of pieces, and takes the sums.
bool MpiSum::contribute(Peer &owner, int &code) {
  bool isMoved = false;
  size_t adders = self.adders.size(), count = owner.pieces.size();
  // 1. Values leave.
  for (; owner.sent < count && owner.sent < owner.done + kWindow;
       ++owner.sent) {
    const Piece &piece = owner.pieces[owner.sent];
    for (size_t i = 0; i < adders; ++i)
      send(at(self.adders[i], piece), getBytes(piece), owner, tag,
           owner.sends[owner.sent % kWindow * adders + i], code);
    isMoved = true;
  }

  // 2. A sum may arrive where the value was when that has left.
  while (owner.received < owner.sent) {
    uint64_t slot = owner.received % kWindow;
    bool hasLeft = true;
    for (size_t i = 0; i < adders; ++i)
      hasLeft &= test(owner.sends[slot * adders + i], code, isMoved);
    if (!hasLeft)
      break;
    const Piece &piece = owner.pieces[owner.received];
    if (self.wantsSum)
      receive(at(uint32_t(target), piece), getBytes(piece), owner, tag + 1,
              owner.receive[slot], code);
    ++owner.received;
    isMoved = true;
  }

  // 3. Sums have arrived.
  for (; owner.done < owner.received; ++owner.done) {
    if (!test(owner.receive[owner.done % kWindow], code, isMoved))
      break;
    const Piece &piece = owner.pieces[owner.done];
    spread(piece, self.wantsSum ? at(uint32_t(target), piece) : nullptr);
    isMoved = true;
  }
  return isMoved;
}

bool MpiSum::advance(int &code) {
  bool isMoved = begin();
  if (!active)
    return isMoved;
  isMoved |= gather(code);
  isMoved |= addUp(code);
  bool isDone = added == self.pieces.size();
  for (Peer &peer : others) {
    isMoved |= contribute(peer, code);
    isDone &= peer.done == peer.pieces.size();
    for (const Request &request : peer.scatters)
      isDone &= !request.isOpen;
  }
  if (!isDone)
    return isMoved;
  active = false;
  ++number;
  if (!copies.empty())
    copyToDevices();
  sum.finish();
  return true;
}
