"""parse_summary: scalars and images of a run's newest event file as files."""

from __future__ import annotations

import csv
import os
from datetime import datetime
from typing import Annotated, BinaryIO

import typer

_PARTS = 10  # lines that tell how far it is


def parse_summary(
    summary_dir: Annotated[
        str, typer.Option(help="The folder of the summary file; the current one if nothing is said.")
    ] = "",
    output: Annotated[
        str, typer.Option(help="Where a folder output_DATE_TIME is made; the current one if nothing is said.")
    ] = "",
) -> None:
    """Write scalars of a run's newest event file to scalar.csv and its images to PNG files.

    As with MindInsight, what is wrong is told in a line with [ERROR], and the exit code is 0.
    """
    folder = os.path.realpath(summary_dir or os.getcwd())
    try:
        newest = _newest(folder)
    except ValueError as error:
        typer.echo(f"[ERROR]{error}")
        return
    target = os.path.join(
        os.path.realpath(output or os.getcwd()), datetime.now().strftime("output_%Y%m%d_%H%M%S_%f")
    )
    from mycelia_insight.exchange.output import Refused, new_folder

    try:
        with new_folder(target) as place, open(newest, "rb") as file:
            _Parser(newest, target, place).run(file)
    except (OSError, Refused) as error:
        typer.echo(f"[ERROR]Parse summary file failed, detail: {error}")


def _newest(folder: str) -> str:
    if not os.path.exists(folder):
        raise ValueError(f"Summary directory {folder} not exists.")
    if not os.path.isdir(folder):
        raise ValueError(f"Summary directory {folder} is not a valid directory.")
    if not os.access(folder, os.R_OK | os.X_OK):
        raise ValueError(f"Path {folder} is not accessible, please check the file-authority.")
    from mycelia_insight.runs.discovery import event_file

    found = [file for name in os.listdir(folder) if (file := event_file(name)) is not None]
    found = [
        file for file in found if "summary." in file.name and not file.name.endswith(("_lineage", "_explain"))
    ]
    if not found:
        raise ValueError(f"Path {folder} has no summary file.")
    path = os.path.join(folder, max(found).name)
    if not os.path.isfile(path):
        raise ValueError(f"Summary file {path} is not a valid file.")
    if not os.access(path, os.R_OK):
        raise ValueError(f"Path {path} is not accessible, please check the file-authority.")
    return path


class _Parser:
    """path: of the event file; target: where the output will lie; place: where it is written until then."""

    def __init__(self, path: str, target: str, place: str):
        self.path, self.target, self.place = path, target, place
        self.scalars = self.images = 0

    def run(self, file: BinaryIO) -> None:
        from mycelia_insight.records.frames import Untrusted, frames

        size = os.fstat(file.fileno()).st_size
        typer.echo(f"[INFO]Loading {self.path}.")
        os.mkdir(os.path.join(self.place, "image"), 0o700)
        step = next_line = size // _PARTS
        before = 0
        with open(os.path.join(self.place, "scalar.csv"), "w", newline="", encoding="utf-8") as table:
            os.chmod(table.name, 0o600)
            rows = csv.writer(table)
            rows.writerow(["tag", "step", "wall_time (unit: seconds)", "value"])
            try:
                for offset, message in frames(file, size):
                    if message is None:
                        typer.echo(f"[WARNING]Check crc failed, the record at byte {before} is left out.")
                    else:
                        self._event(message, rows)
                    before = offset
                    if offset >= next_line:
                        typer.echo(
                            f"[INFO]Current parsing process: {offset}/{size}, {100 * offset // size}%."
                        )
                        next_line = min(next_line + step, size)
            except Untrusted as error:
                typer.echo(
                    "[ERROR]Check crc length failed, please check the summary file integrity, the file "
                    f"may be in transfer, file_path: {self.path}, offset={error.offset}."
                )
        if self.images:
            typer.echo(f"[INFO]Images are written in {os.path.join(self.target, 'image')}.")
        if self.scalars:
            typer.echo(f"[INFO]Writing scalar data into {os.path.join(self.target, 'scalar.csv')}.")
        missing = [
            f" The summary file contains no {what}."
            for what, count in (("image", self.images), ("scalar value", self.scalars))
            if not count
        ]
        if missing:
            typer.echo(f"[WARNING]{''.join(missing)}")
        typer.echo(f"[INFO]Finished loading {self.path}.")

    def _event(self, message: bytes, rows) -> None:
        from mycelia_insight.records.wire import Broken, plain, signed

        try:
            parts = dict(plain(message))
            if not isinstance(summary := parts.get(5), bytes):
                return
            step, time = signed(parts.get(2, 0)), parts.get(1, 0.0)
            for number, value in plain(summary):
                if number == 1:
                    self._value(dict(plain(value)), step, time, rows)
        except (Broken, TypeError) as error:
            typer.echo(f"[WARNING]A record is no event and is left out: {error}.")

    def _value(self, value: dict, step: int, time: float, rows) -> None:
        from mycelia_insight.exchange.output import file_name
        from mycelia_insight.records.wire import plain

        tag = value.get(1, b"").decode("utf-8", "backslashreplace")
        if isinstance(value.get(3), float):
            rows.writerow([tag, step, time, value[3]])
            self.scalars += 1
        if isinstance(value.get(4), bytes) and isinstance(data := dict(plain(value[4])).get(4), bytes):
            path = os.path.join(self.place, "image", f"{file_name(tag)}_{step}.png")
            with open(path, "wb") as file:
                os.chmod(path, 0o600)
                file.write(data)
            self.images += 1
