"""The page that a GPU's owner sends: counts of real runs of pytest, what failed, what did not run."""

import sys

import gpu_report


def test_counts_and_names_of_a_run(tmp_path):
    tests = tmp_path / "test_three.py"
    tests.write_text(
        "import pytest\n"
        "def test_right(): pass\n"
        "def test_wrong(): assert 1 == 2, 'one is not two'\n"
        "def test_left(): pytest.skip('no')\n"
    )
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path]
    found = gpu_report.tests([*map(str, words), str(tests)], 100)
    assert (found["passed"], found["skipped"]) == (1, 1)
    [(name, why)] = found["failed"]
    assert name.endswith("::test_wrong") and "one is not two" in why


def test_a_part_that_ends_or_hangs_is_said():
    said, _ = gpu_report.run([sys.executable, "-c", "print('first'); raise SystemExit(3)"], 60)
    assert "first" in said and said.endswith("ended with 3")
    slow = "import time; print('began', flush=True); time.sleep(600)"
    said, _ = gpu_report.run([sys.executable, "-c", slow], 5)
    assert "began" in said and said.endswith("stopped after 5 seconds")
    found = gpu_report.tests([sys.executable, "-c", "raise SystemExit('no pytest')"], 60)
    assert "no pytest" in found["ended"]


def test_the_page_holds_every_part():
    failed = [["03::Cell 5", "prints\nmore"], ["03::Cell 6", "prints"]]
    report = {
        "date": "2026-01-02",
        "machine": "a machine",
        "gpu": "torch runs on a card",
        "tests": {"ended": "no room", "seconds": 1.0},
        "notebooks": {"passed": 7, "skipped": 1, "failed": failed, "seconds": 9.0},
        "trainer": {"ddp": {"losses": [4.1, 3.0], "seconds": 2.0, "said": ["2 workers and 1 GPU"]}},
        "kernels": [["gemm", 0.4125, 12.0]],
        "times": "some times",
    }
    page = gpu_report.page(report)
    parts = [
        "a machine",
        "no room",
        "7 passed, 1 skipped, 2 failed, in 9.0 s",
        "some times",
        "- `03`, Cell 5 and 1 more: prints\n",
        "losses [4.1, 3.0]",
        "2 workers and 1 GPU",
    ]
    for part in [*parts, "41.2%, 12.0: `gemm`"]:
        assert part in page
