"""What holds of fixes in files that nobody has thought of. PORTLINT_GENERATED=2000 looks at so many of them."""

from __future__ import annotations

import os

import pytest
from generated import file, violations

COUNT = int(os.environ.get("PORTLINT_GENERATED", "24"))


@pytest.mark.parametrize("first", range(0, COUNT, 12))
def test_fixes_of_generated_files(first: int) -> None:
    for seed in range(first, min(first + 12, COUNT)):
        found = list(violations(file(seed), thorough=seed % 6 == 0))
        assert not found, f"generated.file({seed}): {found}"
