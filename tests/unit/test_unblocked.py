"""Output that nobody reads holds nobody up; what could not be kept for its reader is counted."""

from __future__ import annotations

import io
import os
import re

from penstock.cli.render.output import Output
from penstock.cli.render.unblocked import UnblockedStream, unblocked


def test_output_that_nobody_reads_is_taken_at_once_and_what_is_left_out_is_counted() -> None:
    reader, writer = os.pipe()
    usual = os.fdopen(writer, "w")
    stream = UnblockedStream(usual, writer, most_chars=100_000)
    for number in range(30_000):
        stream.write(f"line {number}\n")
    stream.end()  # nobody reads yet, and nobody is waited for
    gaps, at = 0, 0
    with os.fdopen(reader) as text:
        while at < 30_000:
            line = text.readline().rstrip("\n")
            gap = re.fullmatch(r"\(([\d,]+) lines? left out: the output was not read\)", line)
            assert gap or line == f"line {at}"
            at += int(gap[1].replace(",", "")) if gap else 1
            gaps += gap is not None
        assert at == 30_000
        assert gaps
        stream.end()
        usual.close()


def test_what_was_said_is_written_in_order_before_the_stream_is_given_back() -> None:
    reader, writer = os.pipe()
    out = Output(io.StringIO(), os.fdopen(writer, "w"))
    usual = out.stderr
    with unblocked(out):
        out.note("one")
        out.note("two")
    assert out.stderr is usual
    assert os.read(reader, 1000) == b"one\ntwo\n"
    usual.close()
    os.close(reader)


def test_a_reader_that_is_gone_stops_nothing() -> None:
    reader, writer = os.pipe()
    out = Output(io.StringIO(), os.fdopen(writer, "w"))
    os.close(reader)
    with unblocked(out):
        out.note("nobody hears this")
    out.stderr.close()
