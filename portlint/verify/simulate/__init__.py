"""The lane interpreter: a CUDA or HIP kernel executed on the CPU, at any wave width.

`prove` runs a kernel at width 32 and at the target's and compares. What it does not understand ends in `Undecided`,
never in a verdict.

The way through the modules: `preprocess` makes one text of a file and its headers, `program` finds the functions and
types in it, `compiler` with `expressions`, `calls` and `statements` turns a function into closures over the lanes of a
wave, for which `templates` and `overloads` say what a name with its arguments means; `machine` runs waves and blocks,
`launch` makes inputs, and `prove` compares. `compiles` knows what needs no run: what the compiler refuses.
"""

from portlint.verify.simulate.faults import Fault, Undecided
from portlint.verify.simulate.machine import Machine
from portlint.verify.simulate.outcome import Counterexample, Outcome
from portlint.verify.simulate.prove import prove

__all__ = ["Counterexample", "Fault", "Machine", "Outcome", "Undecided", "prove"]
