"""Does something as soon as a package has been imported."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType


class After(importlib.abc.MetaPathFinder):
    """Finds packages as they are found anyway, and calls back when one of them has been imported."""

    def __init__(self, calls: Mapping[str, Callable[[], None]]) -> None:
        self._calls = dict(calls)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec that the others find, with a loader that calls back."""
        call = self._calls.get(fullname)
        if call is None:
            return None
        others = (one for one in sys.meta_path if one is not self and hasattr(one, "find_spec"))
        spec = next((spec for one in others if (spec := one.find_spec(fullname, path, target)) is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, call)
        return spec

    def install(self) -> None:
        """Come before all other finders."""
        sys.meta_path.insert(0, self)


class Missing(importlib.abc.MetaPathFinder):
    """Has a package made where no other finder knows it."""

    def __init__(self, package: str, make: Callable[[], None]) -> None:
        self._package = package
        self._make = make

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of the package that was made."""
        if fullname != self._package:
            return None
        self._make()
        return importlib.machinery.ModuleSpec(fullname, _Made(sys.modules[fullname]), is_package=True)

    def install(self) -> None:
        """Come after all other finders."""
        sys.meta_path.append(self)


class _Made(importlib.abc.Loader):
    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def create_module(self, _spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to do."""


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: importlib.abc.Loader, call: Callable[[], None]) -> None:
        self._loader = loader
        self._call = call

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader  # who asks for resources asks the loader
        module.__loader__ = self._loader
        self._call()
