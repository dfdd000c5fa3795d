"""python -m benchmarks: every benchmark, one after the other."""

from benchmarks import attention, learned_attention, learned_kernels, nadaraya_watson

nadaraya_watson.main()
attention.main()
learned_kernels.main()
learned_attention.main()
