"""What editors ask: completions and signatures, of jedi and of pyright's language server."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import count
from pathlib import Path

import jedi

BIN = Path(sys.executable).parent
SETTINGS = {"typeCheckingMode": "standard", "reportMissingModuleSource": False}


def check(folder: Path, *files: str) -> list[dict]:
    """What the type checker says of files in `folder`, which gets its settings."""
    (folder / "pyrightconfig.json").write_text(json.dumps(SETTINGS))
    command = [str(BIN / "basedpyright"), "--outputjson", "--pythonpath", sys.executable, *files]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)["generalDiagnostics"]


class Jedi:
    """Jedi in the environment that runs this."""

    def __init__(self, folder: Path) -> None:
        self.project = jedi.Project(str(folder), environment_path=sys.prefix)

    def close(self) -> None:
        """Nothing is kept."""

    def complete(self, code: str) -> set[str]:
        return {found.name for found in jedi.Script(code, project=self.project).complete()}

    def parameters(self, code: str) -> list[str]:
        """The names of the parameters of the call that ends the code."""
        return [p.name for p in jedi.Script(code, project=self.project).get_signatures()[0].params]

    def documentation(self, code: str) -> str:
        return jedi.Script(code, project=self.project).get_signatures()[0].docstring()


class Pyright:
    """The language server of basedpyright, spoken to over its standard input and output."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        config = {**SETTINGS, "pythonPath": sys.executable}
        (folder / "pyrightconfig.json").write_text(json.dumps(SETTINGS))
        self.settings = {"python": {"pythonPath": sys.executable}, "basedpyright": {"analysis": config}}
        self.process = subprocess.Popen(
            [str(BIN / "basedpyright-langserver"), "--stdio"],
            cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.numbers, self.files = count(1), count()
        root = [{"uri": folder.as_uri(), "name": "scripts"}]
        self.ask("initialize", processId=None, rootUri=folder.as_uri(), workspaceFolders=root,
                 capabilities={"workspace": {"configuration": True, "workspaceFolders": True}})  # fmt: skip
        self.send("initialized", {})

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def send(self, method: str | None, content, **more) -> None:
        message = {"jsonrpc": "2.0", **({"method": method, "params": content} if method else {}), **more}
        body = json.dumps(message).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def receive(self) -> dict:
        length = 0
        while (line := self.process.stdout.readline().strip()) or not length:
            assert line or self.process.poll() is None, "the language server has ended"
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        return json.loads(self.process.stdout.read(length))

    def ask(self, method: str, **content):
        number = next(self.numbers)
        self.send(method, content, id=number)
        while True:
            message = self.receive()
            if "method" in message:
                if "id" in message:  # the server asks
                    self.send(None, None, id=message["id"], result=self.answer(message))
            elif message.get("id") == number:
                assert "error" not in message, message
                return message["result"]

    def answer(self, message: dict):
        if message["method"] != "workspace/configuration":
            return None
        found = []
        for item in message["params"]["items"]:
            value = self.settings
            for part in item.get("section", "").split("."):
                value = value.get(part, {})
            found.append(value)
        return found

    def at_the_end(self, method: str, code: str):
        """The answer to `method` at the end of a new file."""
        uri = (self.folder / f"script{next(self.files)}.py").as_uri()
        document = {"uri": uri, "languageId": "python", "version": 1, "text": code}
        self.send("textDocument/didOpen", {"textDocument": document})
        lines = code.split("\n")
        position = {"line": len(lines) - 1, "character": len(lines[-1])}
        return self.ask(method, textDocument={"uri": uri}, position=position)

    def complete(self, code: str) -> set[str]:
        found = self.at_the_end("textDocument/completion", code)
        return {item["label"] for item in (found["items"] if isinstance(found, dict) else found)}

    def signature(self, code: str) -> dict:
        return self.at_the_end("textDocument/signatureHelp", code)["signatures"][0]

    def parameters(self, code: str) -> list[str]:
        signature = self.signature(code)
        label = signature["label"]
        found = []
        for parameter in signature["parameters"]:
            part = parameter["label"]
            text = part if isinstance(part, str) else label[part[0] : part[1]]
            found.append(text.partition(":")[0].partition("=")[0].strip(" *"))
        return found

    def documentation(self, code: str) -> str:
        found = self.signature(code).get("documentation", "")
        return found["value"] if isinstance(found, dict) else found
