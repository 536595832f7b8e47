//===- Sum.h - Sums over processes ------------------------------*- C++ -*-===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every element is added up by one process, in the order of the summands, and
// the sum sent to all: the bits of a sum within one process, whoever is first.
// Elements go in pieces, of which few are on their way at a time.
//===----------------------------------------------------------------------===//

#ifndef PENSTOCK_RUNTIME_TRANSPORT_MPI_SUM_H
#define PENSTOCK_RUNTIME_TRANSPORT_MPI_SUM_H

#include "penstock/sum_share.h"
#include "runtime/job/Job.h"
#include "runtime/transport/mpi/Shim.h"
#include "runtime/transport/threads/AllReduce.h"

namespace penstock::runtime {

/// The part that this process has in the sums of one group. Not thread-safe.
class MpiSum {
public:
  /// `tag` and the one after it are for this group alone.
  MpiSum(AllReduce &sum, const penstock_mpi &mpi, const Job &job, int tag);

  /// Starts what can start and takes what has arrived; true if there was
  /// anything. `code` becomes that of an error of MPI.
  bool advance(int &code);
  /// A sum has begun and is not done.
  bool isActive() const { return active; }
  /// Sums of this segment that are done.
  int64_t countDone() const { return number; }
  /// Bytes of the host that it has for itself.
  uint64_t getBytes() const;

private:
  static constexpr uint64_t kWindow = kSumWindow;

  /// Elements of one type that one process adds up.
  struct Piece {
    uint32_t type;
    uint64_t begin, end;
  };
  struct Request {
    penstock_mpi_request request;
    bool isOpen = false;
  };
  /// A process that takes part.
  struct Peer {
    int rank;
    std::vector<uint32_t> adders; // its summands that are added
    bool wantsSum = false;
    std::vector<Piece> pieces; // that it owns
    // What this process sends to and gets from it, of its pieces.
    uint64_t sent = 0, received = 0, done = 0;
    std::vector<Request> sends; // by piece in the window and adder of ours
    Request receive[kWindow];
    // What it sends to us, of our pieces, and gets.
    std::vector<Request> gathers; // by piece in the window and adder of its
    Request scatters[kWindow];
  };

  bool begin();
  void copyFromDevices();
  void copyToDevices();
  bool gather(int &code);
  bool addUp(int &code);
  bool contribute(Peer &owner, int &code);
  bool test(Request &request, int &code, bool &isMoved);
  void send(const void *at, uint64_t bytes, const Peer &peer, int tag,
            Request &request, int &code);
  void receive(void *at, uint64_t bytes, const Peer &peer, int tag,
               Request &request, int &code);
  void addPiece(const Piece &piece, uint64_t slot);
  void spread(const Piece &piece, const char *sum);
  uint64_t getBytes(const Piece &piece) const;
  char *at(uint32_t summand, const Piece &piece) const;
  char *getSum(const Piece &piece, uint64_t slot);

  AllReduce &sum;
  const penstock_group &description;
  const penstock_mpi &mpi;
  const int tag;
  Peer self;
  std::vector<Peer> others;
  std::vector<uint32_t> local; // summands
  std::vector<bool> isAdded;   // by summand
  int64_t target = -1;         // a local summand that receives sums, or -1
  uint32_t localSides = 0;
  /// Values of others, by summand and piece in the window, and sums that no
  /// summand of ours receives.
  std::vector<std::vector<char>> buffers;
  std::vector<char> sums;
  std::vector<const void *> values; // while a piece is added
  /// Values of this process that the host cannot address, by summand and type.
  std::vector<std::vector<char>> copies;

  bool active = false;
  int64_t number = 0;               // sums done in this segment
  uint64_t gathered = 0, added = 0; // pieces of this process

public:
  /// Begins a segment.
  void reset() { number = 0; }
};

} // namespace penstock::runtime

#endif // PENSTOCK_RUNTIME_TRANSPORT_MPI_SUM_H
