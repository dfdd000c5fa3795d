"""One hub for all tests, with two students who have clicked on the class's link."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from class_hub import ROOT, STUDENTS, Hub, Person, password

sys.path.insert(0, str(ROOT / "tools"))

import address


@pytest.fixture(scope="session")
def hub() -> Iterator[Hub]:
    # Other accounts must reach it, and pytest's own folders are closed to them.
    folder = Path(tempfile.mkdtemp(prefix="attnbook-hub-"))
    folder.chmod(0o755)
    hub = Hub(folder)
    try:
        hub.start()
        yield hub
    finally:
        hub.stop()
        hub.kill()
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def link(hub: Hub) -> str:
    """The landing page's link for a class."""
    page = (ROOT / "index.md").read_text("utf-8")
    return hub.link(address.filled(page, address.read_address("some-one/attnbook")))


@pytest.fixture(scope="session")
def students(hub: Hub, link: str) -> dict[str, Person]:
    """Two students, each with a server and the book; they click at the same time."""

    def clicks(name: str) -> Person:
        person = Person(hub, name)
        assert person.log_in(password(name)), hub.log.read_text()
        person.follow(link)
        return person

    with ThreadPoolExecutor() as both:
        return dict(zip(STUDENTS, both.map(clicks, STUDENTS), strict=True))


@pytest.fixture(scope="session", params=STUDENTS)
def student(students: dict[str, Person], request: pytest.FixtureRequest) -> Person:
    return students[request.param]


@pytest.fixture(scope="session")
def other(students: dict[str, Person], student: Person) -> Person:
    """The one who is not the student."""
    (found,) = (person for name, person in students.items() if name != student.name)
    return found
