"""A Firefox without a screen, spoken to by its own remote protocol, Marionette.

Playwright drives a Firefox of its own make alone, which is not where only Debian's packages are.
"""

from __future__ import annotations

import json
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Firefox:
    """One window, in a profile that goes with it."""

    def __init__(self) -> None:
        """Start the browser and wait until it answers."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        (Path(self.profile.name) / "user.js").write_text(
            f'user_pref("marionette.port", {port});\nuser_pref("network.proxy.type", 0);\n',
            encoding="utf-8",
        )
        command = ["firefox", "--headless", "--marionette", "--profile", self.profile.name]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.connection, self.number = self.connect(port), 0
        self.answers = self.connection.makefile("rb")
        self.read()  # its greeting
        self.say("WebDriver:NewSession", {})
        self.tapped = time.monotonic()

    def resize(self, width: int, height: int) -> None:
        """Make the page as wide (500 pixels or more) and as high as said."""
        for _ in range(2):  # the second time the frame around the page is known
            inner, rect = (
                self.run("return [innerWidth, innerHeight]"),
                self.say("WebDriver:GetWindowRect"),
            )
            self.say(
                "WebDriver:SetWindowRect",
                {
                    "width": rect["width"] + width - inner[0],
                    "height": rect["height"] + height - inner[1],
                },
            )
        assert abs(self.run("return innerWidth") - width) <= 2, self.run("return innerWidth")

    def connect(self, port: int) -> socket.socket:
        """The browser's door, once it is open."""
        end = time.monotonic() + 90
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port), timeout=90)
            except OSError:
                if time.monotonic() > end or self.process.poll() is not None:
                    raise
                time.sleep(0.2)

    def read(self) -> Any:
        """One message: its length, a colon, JSON."""
        length = b""
        while not length.endswith(b":"):
            length += self.answers.read(1)
        return json.loads(self.answers.read(int(length[:-1])))

    def say(self, command: str, arguments: dict[str, Any] | None = None) -> Any:
        """A command's answer."""
        self.number += 1
        message = json.dumps([0, self.number, command, arguments or {}]).encode()
        self.connection.sendall(b"%d:%s" % (len(message), message))
        _, _, error, answer = self.read()
        assert error is None, f"{command}: {error['message']}"
        return answer

    def go(self, address: str) -> None:
        """Open a page and wait until it has loaded."""
        self.say("WebDriver:Navigate", {"url": address})

    def run(self, script: str) -> Any:
        """What a script in the page returns."""
        return self.say("WebDriver:ExecuteScript", {"script": script, "args": []})["value"]

    def wait(self, script: str, seconds: float = 15) -> None:
        """Until a script in the page returns true."""
        end = time.monotonic() + seconds
        while self.run(script) is not True:
            assert time.monotonic() < end, script
            time.sleep(0.1)

    def tap(self, selector: str) -> None:
        """A finger on the middle of an element, once it is there: the theme moves entries about."""
        self.wait(f"return document.querySelector({json.dumps(selector)}) !== null")
        found = self.say("WebDriver:FindElement", {"using": "css selector", "value": selector})
        middle = {
            "type": "pointerMove",
            "origin": {ELEMENT: found["value"][ELEMENT]},
            "x": 0,
            "y": 0,
        }
        finger = [middle, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        # two taps within a third of a second would be a double tap
        time.sleep(max(0, self.tapped + 0.5 - time.monotonic()))
        self.act("pointer", finger, parameters={"pointerType": "touch"})
        self.tapped = time.monotonic()

    def press(self, key: str) -> None:
        """A key, down and up."""
        self.act("key", [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}])

    def act(self, kind: str, actions: list[dict[str, Any]], **more: Any) -> None:
        """What a hand does."""
        source = {"type": kind, "id": kind, "actions": actions, **more}
        self.say("WebDriver:PerformActions", {"actions": [source]})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """End the browser; its profile goes with it."""
        self.say("Marionette:Quit", {"flags": ["eForceQuit"]})
        self.answers.close()
        self.connection.close()
        self.process.wait(30)
        self.profile.cleanup()
