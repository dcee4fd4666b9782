# SPDX-License-Identifier: Apache-2.0
"""Single edits of an encoded stream, for tests that ask whether the check of words notices them.

Works on whole packets: a stream is a list of lists of dwords.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from redline.encoders import family_for
from redline.encoders.decode import decode

Stream = list[list[int]]

#: Dwords of ACQUIRE_MEM that tests edit; of WAIT_REG_MEM and RELEASE_MEM the value.
COHER_SIZE, BASE_LO, GCR = 2, 4, 7
REFERENCE, DATA = 4, 5


def packets(words: Iterable[int], target: str) -> Stream:
    """The stream cut into packets."""
    return [list(command.words) for command in decode([int(word) for word in words], family_for(target))]


def joined(stream: Stream) -> list[int]:
    """The packets as one row of dwords."""
    return [word for packet in stream for word in packet]


def where(stream: Stream, target: str, name: str) -> list[int]:
    """Indices of the packets of a kind."""
    return [at for at, packet in enumerate(stream) if decode(packet, family_for(target))[0].name == name]


def without(stream: Stream, at: int, count: int = 1) -> Stream:
    """Some packets left out."""
    return stream[:at] + stream[at + count :]


def changed(stream: Stream, at: int, word: int, change: Callable[[int], int]) -> Stream:
    """One dword of one packet replaced."""
    packet = list(stream[at])
    packet[word] = change(packet[word])
    return [*stream[:at], packet, *stream[at + 1 :]]


def swapped(stream: Stream, at: int, before: int) -> Stream:
    """A packet moved in front of an earlier one."""
    return [*stream[:before], stream[at], *stream[before:at], *stream[at + 1 :]]


def gcr_bits(target: str, *names: str) -> int:
    """The bits of these GCR_CNTL fields; a field that the family has not adds none."""
    word = family_for(target).gcr
    return sum(word.pack(**{name: 1}) for name in names if name in word.by_name)


def cleared(stream: Stream, at: int, target: str, *names: str) -> Stream:
    """An acquire without these fields."""
    return changed(stream, at, GCR, lambda gcr: gcr & ~gcr_bits(target, *names))


def drains(stream: Stream, target: str) -> Iterator[tuple[int, int]]:
    """(first packet, packets) of each drain: a flush, or a release with its wait."""
    flushes = [(at, 1) for at in where(stream, target, "EVENT_WRITE")]
    yield from sorted(flushes + [(at, 2) for at in where(stream, target, "RELEASE_MEM")])
