"""A browser that sees one family of fonts alone, as on a machine that has no other."""

from __future__ import annotations

import os
from pathlib import Path

OWN = "the machine's"
FOLDERS = (Path("/usr/share/fonts"), Path("/usr/local/share/fonts"))
FAMILIES = {
    "dejavu": ("DejaVu Sans", "DejaVu Serif", "DejaVu Sans Mono"),
    "liberation": ("Liberation Sans", "Liberation Serif", "Liberation Mono"),
    "noto": ("Noto Sans", "Noto Serif", "Noto Sans Mono"),
}
GENERIC = (("sans-serif", "sans", "system-ui"), ("serif",), ("monospace", "mono", "ui-monospace"))
CONFIGURATION = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
<dir>{folder}</dir>
<cachedir>{cache}</cachedir>
{aliases}
{fallback}
<match target="pattern"><edit name="hintstyle" mode="append"><const>hintslight</const></edit></match>
</fontconfig>
"""
ALIAS = '<alias binding="strong"><family>{}</family><prefer><family>{}</family></prefer></alias>'
# whatever else a page names is a sans, as on every desktop
FALLBACK = '<match><edit name="family" mode="append_last"><string>{}</string></edit></match>'


def folder_of(name: str) -> Path | None:
    """Where the fonts of this name lie; None if they are not installed."""
    return next((p for folder in FOLDERS for p in sorted(folder.rglob(name)) if p.is_dir()), None)


def environment(name: str, kept: Path) -> dict[str, str]:
    """Variables under which a program sees those fonts and no other; its files go to ``kept``.

    Raises:
        LookupError: the fonts are not installed.
    """
    if name == OWN:
        return {**os.environ}
    folder = folder_of(name)
    if folder is None:
        raise LookupError(f"no fonts {name} below {' or '.join(map(str, FOLDERS))}")
    pairs = [(one, own) for many, own in zip(GENERIC, FAMILIES[name], strict=True) for one in many]
    text = CONFIGURATION.format(
        folder=folder,
        cache=kept / "cache",
        aliases="\n".join(ALIAS.format(*pair) for pair in pairs),
        fallback=FALLBACK.format(FAMILIES[name][0]),
    )
    file = kept / f"{name}.conf"
    file.write_text(text, encoding="utf-8")
    return {**os.environ, "FONTCONFIG_FILE": str(file)}
