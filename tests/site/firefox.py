"""A Firefox without a screen, spoken to by WebDriver BiDi: a socket, and a message of JSON each way.

Playwright drives a Firefox of its own make alone, which is not where only Debian's packages are.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import websocket

SECONDS = 180  # until what is waited for counts as missing
PREFERENCES = {"network.proxy.type": 0}


class Firefox:
    """One window, in a profile that goes with it; ``log`` has what its console said."""

    def __init__(self) -> None:
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        folder = Path(self.profile.name)
        wanted = (f"user_pref({json.dumps(k)}, {json.dumps(v)});" for k, v in PREFERENCES.items())
        (folder / "user.js").write_text("\n".join(wanted), encoding="utf-8")
        command = ["firefox", "--headless", "--remote-debugging-port=0", "--profile", str(folder)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        address = f"ws://127.0.0.1:{self.port(folder)}/session"
        self.door = websocket.create_connection(address, SECONDS, suppress_origin=True)
        self.number, self.log = 0, list[str]()
        self.say("session.new", {"capabilities": {}})
        tree = self.say("browsingContext.getTree", {})
        self.window = {"context": tree["contexts"][0]["context"]}
        self.say("session.subscribe", {"events": ["log.entryAdded"]})

    def port(self, profile: Path) -> int:
        """Where the browser listens, once it does."""
        file, end = profile / "WebDriverBiDiServer.json", time.monotonic() + SECONDS
        while not file.is_file() or not file.stat().st_size:
            assert time.monotonic() < end and self.process.poll() is None, "Firefox does not start"
            time.sleep(0.1)
        return json.loads(file.read_text(encoding="utf-8"))["ws_port"]

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height}
        self.say("browsingContext.setViewport", {**self.window, "viewport": size})
        assert self.run("return innerWidth") == width

    def say(self, method: str, params: dict[str, Any]) -> Any:
        """A command's answer; what the console says meanwhile is noted."""
        self.number += 1
        self.door.send(json.dumps({"id": self.number, "method": method, "params": params}))
        while True:
            message = json.loads(self.door.recv())
            if message.get("id") == self.number:
                assert message["type"] == "success", f"{method}: {message.get('message')}"
                return message["result"]
            if message.get("method") == "log.entryAdded":
                entry = message["params"]
                self.log.append(f"{entry['level']}: {entry['text']}")

    def go(self, address: str) -> None:
        """Open a page and wait until it has loaded."""
        self.say("browsingContext.navigate", {**self.window, "url": address, "wait": "complete"})
        self.wait("return document.readyState === 'complete' && document.body !== null")

    def run(self, script: str) -> Any:
        """What a script in the page returns."""
        whole = f"(async () => {{ {script} }})().then((found) => JSON.stringify(found ?? null))"
        wanted = {"expression": whole, "target": self.window, "awaitPromise": True}
        answer = self.say("script.evaluate", {**wanted, "userActivation": True})
        assert answer["type"] == "success", f"{script}: {answer['exceptionDetails']['text']}"
        return json.loads(answer["result"]["value"])

    def wait(self, script: str, seconds: float = SECONDS) -> None:
        """Until a script in the page returns true."""
        end = time.monotonic() + seconds
        while self.run(script) is not True:
            assert time.monotonic() < end, script
            time.sleep(0.1)

    def click(self, selector: str) -> None:
        """As a reader's click does, once the element is there."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.wait(f"return {found} !== null")
        self.run(f"{found}.click()")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """End the browser; its profile goes with it."""
        try:
            self.say("browser.close", {})
        finally:
            self.door.close()
            self.process.terminate()
            self.process.wait(SECONDS)
            self.profile.cleanup()
