// The type of lane masks: what ballots return, and what the *_sync functions take.
//
// ITEM: mask_bits with VALUE, their bits; ballot_type with VALUE, the type; sync_mask_type with VALUE, the type or
// "64-bit integer".
//
// Proof: compile
#include "portlint.h"

template <class T>
constexpr bool IS_BALLOT = false;
template <>
constexpr bool IS_BALLOT<decltype(__ballot_sync(ALL_LANES, 1))> = true;
constexpr int BALLOT_BITS = 8 * sizeof(decltype(__ballot_sync(ALL_LANES, 1)));

// A call converts a wider mask without a word, so the bits of the ballot are asked as well.
template <class Mask>
__device__ int votes() {
  static_assert(8 * sizeof(Mask) <= BALLOT_BITS, "wider than the masks of the *_sync functions");
  return __any_sync(static_cast<Mask>(-1), 1);
}

#if defined(ITEM_mask_bits)
template <int BITS>
struct Mask;
template <>
struct Mask<32> {
  using Type = unsigned;
};
template <>
struct Mask<64> {
  using Type = unsigned long long;
};
static_assert(BALLOT_BITS == VALUE, "another number of bits in a ballot");
__global__ void measure(int* out) { *out = votes<Mask<VALUE>::Type>(); }
#elif defined(ITEM_ballot_type)
static_assert(IS_BALLOT<VALUE>, "ballots are of another type");
#elif defined(ITEM_sync_mask_type)
#define TEXT_OF(...) #__VA_ARGS__
#define TEXT(...) TEXT_OF(__VA_ARGS__)
template <bool WIDE>
struct Mask {
  using Type = unsigned;
};
template <>
struct Mask<true> {
  using Type = unsigned long long;
};
__global__ void measure(int* out) { *out = votes<Mask<TEXT(VALUE)[0] == '6'>::Type>(); }
#else
#error "no such item here"
#endif
