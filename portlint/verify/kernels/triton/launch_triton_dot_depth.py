"""The smallest inner dimension of tl.dot on float16: what the back end says, for the shape at hand.

How it checks itself: the depth that was found must compile, and half of it must be refused.

Proof: compile
"""

from _kernel import options, report

asked = options("launch.triton_dot_depth")

from _compile import target, triton
from _product import instructions, multiplied

DEPTHS = (1, 2, 4, 8, 16, 32)

gpu = target(asked)
words = ""
measured = 0
for depth in reversed(DEPTHS):
    made = multiplied("fp16", gpu, (64, 64, depth))
    if not made.accepted:
        words = f"{depth}: {made.words}"
        break
    measured, words = depth, f"{depth}: {instructions(made)[:1]}"
report(asked.fact, measured, checked=measured > 0, detail=words, triton=triton.__version__)
