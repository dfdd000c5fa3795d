"""python -m benchmarks: every benchmark, one after the other."""

from benchmarks import nadaraya_watson

nadaraya_watson.main()
