"""The browser and the built site, as the site's tests have them."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

SITE = Path(__file__).parents[1] / "site"
sys.path.insert(0, str(SITE))

spec = spec_from_file_location("conftest_of_site", SITE / "conftest.py")
assert spec is not None and spec.loader is not None
of_site = module_from_spec(spec)
spec.loader.exec_module(of_site)
browser, site = of_site.browser, of_site.site
