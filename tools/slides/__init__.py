"""Decks of slides from lectures/*.md and the chapters that these refer to."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "_ext"))  # formulas and code look as on the site
