// The type of lane masks: what ballots return, and what the *_sync functions take.
//
// ITEM: mask_bits with VALUE, their bits; ballot_type with VALUE, the type; sync_mask_type with VALUE, the type or
// "64-bit integer".
//
// Proof: compile
#include "portlint.h"

template <class A, class B>
constexpr bool ARE_ALIKE = false;
template <class A>
constexpr bool ARE_ALIKE<A, A> = true;

template <bool IS_WIDE>
struct Choice {
  using Mask = unsigned;
};
template <>
struct Choice<true> {
  using Mask = unsigned long long;
};

// A call converts a wider mask without a word, so the bits of the ballot are asked as well.
template <class Mask>
__device__ int votes() {
  static_assert(sizeof(Mask) <= sizeof(__ballot_sync(ALL_LANES, 1)), "wider than the masks of the *_sync functions");
  return __any_sync(static_cast<Mask>(-1), 1);
}

#define TEXT_OF(...) #__VA_ARGS__
#define TEXT(...) TEXT_OF(__VA_ARGS__)

__global__ void measure(int* out) {
#if defined(ITEM_mask_bits)
  static_assert(8 * sizeof(__ballot_sync(ALL_LANES, 1)) == VALUE, "another number of bits in a ballot");
  *out = votes<Choice<VALUE == 64>::Mask>();
#elif defined(ITEM_ballot_type)
  static_assert(ARE_ALIKE<VALUE, decltype(__ballot_sync(ALL_LANES, 1))>, "ballots are of another type");
#elif defined(ITEM_sync_mask_type)
  *out = votes<Choice<TEXT(VALUE)[0] == '6'>::Mask>();
#else
#error "no such item here"
#endif
}
