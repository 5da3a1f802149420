"""Builds the extension module and bundles the CPU kernel libraries; metadata is in pyproject.toml.

Environment:
  CXX, CPPFLAGS, CXXFLAGS, LDFLAGS   as usual (CXX="ccache g++" works)
  NPY_NUM_BUILD_JOBS                 parallel compilations (default: the CPUs this process may use)
  ASCENDSCHED_BUILD_ONEDNN=0         build without oneDNN; ASCENDSCHED_BUILD_OPENBLAS=0 likewise
  ASCENDSCHED_SANITIZE=thread        or "address": an instrumented build, with its own object files
  ASCENDSCHED_WERROR=1               warnings are errors

tests/cpp/build.py imports this file, so that the C++ tests are compiled with the same flags and objects.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
SOURCE = ROOT / "csrc"
SANITIZERS = {"": "", "thread": "thread", "address": "address,undefined"}


@dataclass(frozen=True)
class Library:
    """A kernel library that the extension links and carries in ascendsched/_libs."""

    define: str
    switch: str
    distribution: str
    headers: str
    shared: str
    licences: tuple[str, ...]
    header_distribution: str = ""

    @property
    def is_wanted(self) -> bool:
        return os.environ.get(self.switch, "1") != "0"


ONEDNN = Library(
    define="ASC_HAVE_ONEDNN",
    switch="ASCENDSCHED_BUILD_ONEDNN",
    distribution="onednn-cpu-gomp",
    header_distribution="onednn-devel-cpu-gomp",
    headers="dnnl.hpp",
    shared="libdnnl.so.3",
    licences=("LICENSE", "THIRD-PARTY-PROGRAMS"),
)
OPENBLAS = Library(
    define="ASC_HAVE_OPENBLAS",
    switch="ASCENDSCHED_BUILD_OPENBLAS",
    distribution="scipy-openblas32",
    headers="cblas.h",
    shared="libscipy_openblas.so",
    licences=("LICENSE.txt",),
)


def wanted_libraries() -> list[Library]:
    """The bundled libraries of this build: both on x86-64 Linux, OpenBLAS on other Linux, none elsewhere."""
    if not sys.platform.startswith("linux"):
        return []
    here = [ONEDNN, OPENBLAS] if platform.machine() in ("x86_64", "AMD64") else [OPENBLAS]
    return [library for library in here if library.is_wanted]


def find_file(distribution: str, name: str) -> Path:
    """Path of an installed distribution's file, by file name: the data scheme's folder varies between installs."""
    try:
        files = importlib.metadata.files(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        raise SystemExit(
            f"[setup] build requirement {distribution} is not installed; build with pip's isolation, install the "
            "build requirements of pyproject.toml, or set ASCENDSCHED_BUILD_ONEDNN=0 / ASCENDSCHED_BUILD_OPENBLAS=0"
        ) from None
    found = [Path(str(f.locate())).resolve() for f in files if f.name == name]
    # Of several (dnnl.hpp is also installed as oneapi/dnnl/dnnl.hpp) the shallowest is the one to include.
    found = sorted((p for p in found if p.exists()), key=lambda p: len(p.parts))
    if not found:
        raise SystemExit(f"[setup] {distribution} is installed but has no file {name}; reinstall {distribution}")
    return found[0]


def sanitizer() -> str:
    """The chosen sanitizer, "" for none."""
    name = os.environ.get("ASCENDSCHED_SANITIZE", "")
    if name not in SANITIZERS:
        raise SystemExit(f"[setup] ASCENDSCHED_SANITIZE={name!r}; use 'thread' or 'address'")
    return name


def job_count() -> int:
    """How many compilations run at once."""
    asked = os.environ.get("NPY_NUM_BUILD_JOBS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compile_flags() -> list[str]:
    """Flags of every C++ file.

    No -march: vector code names its instruction sets itself. Contraction to fused multiply-add is left on: outside
    that vector code baseline x86-64 has no such instruction, and inside it the polynomials need it. -fno-math-errno
    lets sqrt and friends be one instruction.
    """
    flags = ["-std=c++17", "-fPIC", "-fvisibility=hidden", "-fno-math-errno", "-ffp-contract=fast", "-fopenmp"]
    flags += ["-pthread", "-Wall", "-Wextra", f"-I{SOURCE}"]
    if os.environ.get("ASCENDSCHED_WERROR") == "1":
        flags.append("-Werror")
    if name := sanitizer():
        flags += ["-O1", "-g", "-fno-omit-frame-pointer", f"-fsanitize={SANITIZERS[name]}"]
    else:
        flags += ["-O2", "-DNDEBUG"]
    libraries = wanted_libraries()
    flags += [f"-D{library.define}={int(library in libraries)}" for library in (ONEDNN, OPENBLAS)]
    return flags + shlex.split(os.environ.get("CPPFLAGS", "")) + shlex.split(os.environ.get("CXXFLAGS", ""))


def private_flags(source: Path) -> list[str]:
    """Include paths that only some folders get: no other folder can include Python or a kernel library."""
    folder = source.relative_to(ROOT).as_posix()
    if folder.startswith("csrc/bindings/"):
        import pybind11

        paths = {pybind11.get_include(), *(sysconfig.get_path(p) for p in ("include", "platinclude"))}
    elif folder.startswith("csrc/backends/cpu/"):
        found = [find_file(lib.header_distribution or lib.distribution, lib.headers) for lib in wanted_libraries()]
        paths = {str(path.parent) for path in found}
    elif folder.startswith("csrc/backends/plugin/"):
        paths = {str(ROOT / "ascendsched" / "include")}  # what plug-ins include
    else:
        paths = set()
    return [word for path in sorted(paths) for word in ("-isystem", path)]


def link_flags() -> list[str]:
    """Libraries and linker options of the extension and of the C++ tests."""
    flags = ["-fopenmp", "-pthread", *shlex.split(os.environ.get("LDFLAGS", ""))]
    if name := sanitizer():
        flags.append(f"-fsanitize={SANITIZERS[name]}")
    return flags + [str(find_file(library.distribution, library.shared)) for library in wanted_libraries()]


@dataclass
class Compiler:
    """Compiles into one object folder, redoing only what a changed source, header or command line asks for."""

    objects: Path
    command: list[str] = field(default_factory=lambda: shlex.split(os.environ.get("CXX") or "g++"))

    @classmethod
    def create(cls) -> Compiler:
        return cls(ROOT / "build" / ("objects-" + (sanitizer() or "release")))

    def compile(self, sources: list[Path], extra: list[str] | None = None) -> list[Path]:
        """Object files of `sources`, in order; raises SystemExit with the compiler's messages."""
        flags = compile_flags() + (extra or [])
        work = [(s, self._object(s), [*self.command, *flags, *private_flags(s), "-c", str(s)]) for s in sources]
        stale = [item for item in work if not self._is_fresh(item[1], item[2])]
        with ThreadPoolExecutor(job_count()) as pool:
            pending = [pool.submit(self._compile_one, i, len(stale), *item) for i, item in enumerate(stale, 1)]
            try:
                for result in pending:
                    result.result()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        return [item[1] for item in work]

    def link(self, objects: list[Path], target: Path, flags: list[str]) -> None:
        """Links `objects`; does nothing when the target is newer than all of them and the command is the same."""
        command = [*self.command, *map(str, objects), *flags, "-o", str(target)]
        stamp = self.objects / (target.name + ".link")
        newest = max(o.stat().st_mtime for o in objects)
        if target.exists() and target.stat().st_mtime >= newest and _read(stamp) == _text(command):
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)  # a process that has mapped the old file keeps it
        _run(command)
        stamp.write_text(_text(command))

    def _object(self, source: Path) -> Path:
        return self.objects / source.relative_to(ROOT).with_suffix(".o")

    def _compile_one(self, number: int, total: int, source: Path, target: Path, command: list[str]) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.with_suffix(".cmd").unlink(missing_ok=True)
        sys.stdout.write(f"[{number}/{total}] {source.relative_to(ROOT)}\n")  # one write: other threads print too
        sys.stdout.flush()
        started = time.time()
        _run([*command, "-MMD", "-MF", str(target.with_suffix(".d")), "-o", str(target)])
        # A file that was edited while the compiler ran is newer than this.
        os.utime(target, (started, started))
        target.with_suffix(".cmd").write_text(_text(command))

    def _is_fresh(self, target: Path, command: list[str]) -> bool:
        if not target.exists() or _read(target.with_suffix(".cmd")) != _text(command):
            return False
        rule = _read(target.with_suffix(".d")).replace("\\\n", " ").partition(":")[2]
        built = target.stat().st_mtime
        try:
            names = [name.replace("\0", " ") for name in rule.replace("\\ ", "\0").split()]
            return bool(names) and all(Path(name).stat().st_mtime < built for name in names)
        except FileNotFoundError:
            return False


def _text(command: list[str]) -> str:
    return shlex.join(command)


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.stdout or done.stderr:
        print(done.stdout + done.stderr, flush=True)
    if done.returncode:
        raise SystemExit(f"[setup] command failed with status {done.returncode}: {_text(command)}")


def core_sources() -> list[Path]:
    """Every C++ source, in a stable order."""
    return sorted(SOURCE.rglob("*.cc"))


class BuildCore(build_ext):
    """build_ext with dependency tracking, which also places the bundled libraries beside the extension."""

    def build_extension(self, ext: Extension) -> None:
        compiler = Compiler.create()
        objects = compiler.compile([ROOT / s for s in ext.sources])
        rpath = ["-Wl,--enable-new-dtags", "-Wl,-rpath,$ORIGIN/_libs"] if wanted_libraries() else []
        shared = ["-bundle", "-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-shared"]
        target = Path(self.get_ext_fullpath(ext.name)).resolve()
        compiler.link(objects, target, [*shared, *rpath, *link_flags()])

    def run(self) -> None:
        super().run()
        package = ROOT / "ascendsched" if self.inplace else Path(self.build_lib) / "ascendsched"
        place_libraries(package / "_libs")


def place_libraries(folder: Path) -> None:
    """Fills `folder` with the stripped libraries and their licences, and nothing else."""
    expected: set[str] = set()
    for library in wanted_libraries():
        sources = {library.shared: find_file(library.distribution, library.shared)}
        for licence in library.licences:
            stem = licence.removesuffix(".txt")
            sources[f"{stem}.{library.distribution}.txt"] = find_file(library.distribution, licence)
        for name, source in sources.items():
            expected.add(name)
            _place(source, folder / name, strip=name == library.shared)
    for stray in folder.iterdir() if folder.exists() else ():
        if stray.name not in expected:
            stray.unlink()


def _place(source: Path, target: Path, strip: bool) -> None:
    # The copy keeps the source's time stamp, stripped or not; equal stamps mean nothing to do.
    if target.exists() and target.stat().st_mtime_ns == source.stat().st_mtime_ns:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    shutil.copyfile(source, part)
    tool = shutil.which("strip")
    if strip and tool:
        subprocess.run([tool, "--strip-unneeded", str(part)], check=False)
    shutil.copystat(source, part)
    part.replace(target)  # never write into a library that a running process has mapped


if __name__ == "__main__":
    setup(
        ext_modules=[Extension("ascendsched._core", [str(p.relative_to(ROOT)) for p in core_sources()])],
        cmdclass={"build_ext": BuildCore},
    )
