//===- Sha256.cpp - SHA-256 (FIPS 180-4) ----------------------------------===//
//
// Part of the Penstock project, under the Apache License v2.0 with LLVM
// Exceptions. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The plain algorithm, straight from the standard, and the same with the CPU's
// SHA instructions: models of gigabytes are hashed whenever a program opens.
//===----------------------------------------------------------------------===//

#include "penstock/sha256.h"

#include <bit>
#include <cpuid.h>
#include <cstring>
#include <immintrin.h>

namespace {

constexpr uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t loadBigEndian(const uint8_t *bytes) {
  return uint32_t(bytes[0]) << 24 | uint32_t(bytes[1]) << 16 |
         uint32_t(bytes[2]) << 8 | uint32_t(bytes[3]);
}

using Compress = void (*)(uint32_t (&state)[8], const uint8_t *block);

void compressPortably(uint32_t (&state)[8], const uint8_t *block) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i)
    w[i] = loadBigEndian(block + 4 * size_t(i));
  for (int i = 16; i < 64; ++i) {
    uint32_t s0 =
        std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    uint32_t s1 =
        std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
  uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
  for (int i = 0; i < 64; ++i) {
    uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
    uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  uint32_t next[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i)
    state[i] += next[i];
}

[[gnu::target("sha,sse4.1,ssse3")]]
void compressWithInstructions(uint32_t (&state)[8], const uint8_t *block) {
  // The instructions keep the state as (a b e f) and (c d g h).
  __m128i *memory = reinterpret_cast<__m128i *>(state);
  __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128(memory), 0xb1);
  __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128(memory + 1), 0x1b);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
  __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
  const __m128i firstAbef = abef, firstCdgh = cdgh;

  const __m128i bigEndian =
      _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i w[4]; // the last sixteen words of the message schedule
  for (int i = 0; i < 16; ++i) {
    __m128i &next = w[i % 4];
    if (i < 4) {
      next = _mm_shuffle_epi8(
          _mm_loadu_si128(reinterpret_cast<const __m128i *>(block) + i),
          bigEndian);
    } else {
      __m128i sum = _mm_sha256msg1_epu32(next, w[(i + 1) % 4]);
      sum = _mm_add_epi32(sum,
                          _mm_alignr_epi8(w[(i + 3) % 4], w[(i + 2) % 4], 4));
      next = _mm_sha256msg2_epu32(sum, w[(i + 3) % 4]);
    }
    __m128i keyed = _mm_add_epi32(
        next, _mm_loadu_si128(reinterpret_cast<const __m128i *>(kRound) + i));
    cdgh = _mm_sha256rnds2_epu32(cdgh, abef, keyed);
    abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(keyed, 0x0e));
  }
  abef = _mm_add_epi32(abef, firstAbef);
  cdgh = _mm_add_epi32(cdgh, firstCdgh);
  __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
  __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(memory, _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(memory + 1, _mm_alignr_epi8(dchg, feba, 8));
}

bool hasInstructions() {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSE4_1))
    return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}

/// How often a caller hears of the progress.
constexpr uint64_t kPart = 16 << 20;

void computeDigest(Compress compress, const void *data, uint64_t size,
                   uint8_t digest[32], void (*done)(void *, uint64_t) = nullptr,
                   void *context = nullptr) {
  uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const uint8_t *bytes = static_cast<const uint8_t *>(data);
  uint64_t whole = size / 64 * 64;
  for (uint64_t at = 0; at < whole; at += 64) {
    compress(state, bytes + at);
    if (done && (at + 64) % kPart == 0)
      done(context, at + 64);
  }

  // The rest, a one bit, zeros, and the length in bits.
  uint8_t tail[128] = {};
  uint64_t rest = size - whole;
  if (rest)
    std::memcpy(tail, bytes + whole, rest);
  tail[rest] = 0x80;
  uint64_t end = rest < 56 ? 64 : 128;
  for (int i = 0; i < 8; ++i)
    tail[end - 1 - i] = uint8_t((size * 8) >> (8 * i));
  for (uint64_t at = 0; at < end; at += 64)
    compress(state, tail + at);
  for (int i = 0; i < 32; ++i)
    digest[i] = uint8_t(state[i / 4] >> (24 - 8 * (i % 4)));
}

} // namespace

/// For tests: the same without special instructions.
extern "C" void penstock_sha256_portable(const void *data, uint64_t size,
                                         uint8_t digest[32]) {
  computeDigest(compressPortably, data, size, digest);
}

extern "C" void penstock_sha256(const void *data, uint64_t size,
                                uint8_t digest[32]) {
  penstock_sha256_in_parts(data, size, digest, nullptr, nullptr);
}

extern "C" void
penstock_sha256_in_parts(const void *data, uint64_t size, uint8_t digest[32],
                         void (*done)(void *context, uint64_t end),
                         void *context) {
  static const Compress compress =
      hasInstructions() ? compressWithInstructions : compressPortably;
  computeDigest(compress, data, size, digest, done, context);
}
