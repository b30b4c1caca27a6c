"""The dtypes that NumPy gives its results, as far as they are the same in all versions.

"" stands for a dtype that is not known. Numbers are "int", "float" and "complex" where they are Python's, and have a
dtype of their own where NumPy made them (`np.sqrt(2)` is a float64, and PyTorch makes a float64 tensor of it).
"""

from __future__ import annotations

from collections.abc import Collection

from portlint.regex import regex

FLOAT64_MAKERS = frozenset(
    "zeros ones empty linspace logspace geomspace eye identity hanning hamming blackman bartlett kaiser loadtxt"
    " genfromtxt interp fft.fftfreq fft.rfftfreq".split()
)
"""functions whose result is float64 unless another dtype is given"""
RANDOM_FLOATS = frozenset(
    "rand randn random random_sample ranf normal uniform standard_normal beta gamma exponential lognormal laplace"
    " standard_gamma standard_exponential triangular logistic gumbel rayleigh weibull dirichlet"
    " multivariate_normal".split()
)
RANDOM_INTEGERS = frozenset("randint integers permutation binomial poisson geometric".split())
JOINING = frozenset(
    "array asarray ascontiguousarray asanyarray stack concatenate vstack hstack dstack column_stack row_stack block"
    " concat atleast_1d atleast_2d".split()
)
"""functions that make one array of a list"""
_FLOATING = frozenset(
    "sqrt exp log log2 log10 log1p expm1 sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh mean average std var"
    " median percentile quantile nanmean nanstd true_divide divide deg2rad rad2deg radians degrees hypot reciprocal"
    " sinc cbrt linalg.norm linalg.inv linalg.solve".split()
)
"""functions that make floats of integers"""
_INTEGERS = frozenset("argmax argmin argsort nonzero searchsorted digitize bincount count_nonzero lexsort".split())
_TESTS = frozenset(
    "isnan isinf isfinite isclose isin equal not_equal less less_equal greater greater_equal logical_and logical_or"
    " logical_not logical_xor any all".split()
)
_KEEPING = frozenset(
    "abs absolute fabs negative clip round around floor ceil trunc rint sign square maximum minimum fmax fmin"
    " add subtract multiply power float_power reshape ravel transpose squeeze expand_dims flip fliplr flipud"
    " roll rot90 tile repeat pad swapaxes moveaxis broadcast_to copy sort unique diff max min amax amin nanmax"
    " nanmin zeros_like ones_like empty_like full_like dot matmul inner outer cross einsum tensordot kron trace"
    " diag diagonal triu tril take delete insert append resize gradient nan_to_num meshgrid where cumsum"
    " cumprod sum prod nansum real imag rollaxis cov corrcoef".split()
)
_COMPLEX = frozenset(f"fft.{name}" for name in "fft ifft fft2 ifft2 fftn ifftn rfft rfft2 rfftn".split())
_INTEGER = regex(r"u?int\d+|bool|int")
_WIDE_INTEGER = regex(r"u?int(32|64)|int")


def is_integer(dtype: str) -> bool:
    """Whether a dtype is an integer's, or bool."""
    return _INTEGER.fullmatch(dtype) is not None


def widest(dtypes: Collection[str]) -> str:
    """The dtype of arithmetic between arrays."""
    kinds = set(dtypes)
    if len(kinds) == 1:
        return next(iter(kinds))
    if "complex128" in kinds:
        return "complex128"
    if "float64" in kinds:
        return "complex128" if "complex64" in kinds else "float64"
    if "" in kinds:
        return ""
    wide_integers = [one for one in kinds if _WIDE_INTEGER.fullmatch(one)]
    floats = kinds - {one for one in kinds if is_integer(one)}
    if floats == {"float32"}:
        return "float64" if wide_integers else "float32"
    return ""


def arithmetic(operator: str, arrays: Collection[str], numbers: Collection[str]) -> str:
    """The dtype of an operation between arrays and Python numbers."""
    dtype = widest(arrays)
    if not is_integer(dtype):
        return dtype
    return "float64" if operator == "/" or not set(numbers) <= {"int", "", "bool"} else dtype


def of_function(name: str, dtypes: Collection[str]) -> str:
    """The dtype of what `numpy.NAME` makes of arrays of these dtypes, where no dtype is given."""
    if name in FLOAT64_MAKERS or (name.startswith("random.") and name.removeprefix("random.") in RANDOM_FLOATS):
        return "float64"
    if name in _INTEGERS or (name.startswith("random.") and name.removeprefix("random.") in RANDOM_INTEGERS):
        return "int64"
    if name in _TESTS:
        return "bool"
    if not dtypes:
        return ""
    dtype = widest(dtypes)
    if name in _FLOATING:
        return "float64" if _WIDE_INTEGER.fullmatch(dtype) else "" if is_integer(dtype) else dtype
    if name in _COMPLEX:
        return "complex128" if dtype in ("float64", "complex128") or _WIDE_INTEGER.fullmatch(dtype) else ""
    return dtype if name in _KEEPING else ""
