"""The jobs that append beside a job that replaces: which came before it, and which come after (I6).

A job that replaces chooses one moment. The files of an append that had ended by then are replaced.
Those of every other append stay, whether it is under way or decided later, as if it had come after.
The moment is the same for all partitions and for all files of an append, so the jobs have one
order. docs/proof.md has the reasons, `tests/sim/test_serial_order.py` a model.
"""

from __future__ import annotations

from functools import partial
from itertools import chain, islice

from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.limits import APPEND_READINGS, MAX_APPENDS
from s3commit.core.model.locks import Append, destination_node, nodes_above
from s3commit.core.model.record import JobRecord
from s3commit.core.ports.bundle import Ports


class Appends:
    """The appends at, above and below the destination of a job that replaces.

    Made before the listing of what is to be replaced: that is the moment. Raises
    `JobRefusedError` (``DESTINATION_BUSY``) if there are more than `MAX_APPENDS`, or if they end
    faster than they can be read.
    """

    def __init__(self, ports: Ports, record: JobRecord) -> None:
        self._ports = ports
        node = destination_node(record.destination)
        self._nodes = [node, *nodes_above([node])]
        self._ended = self._ended_at_one_moment()

    def to_leave(self) -> dict[str, tuple[str, ...]]:
        """The ids of the jobs whose files stay, each with the nodes below which they do.

        Asked after the files were listed. Elsewhere a file with such an id is of another job, since
        a job is an id at a destination (I12).

        An append that was decided since the moment is listed still: it is under way, or has ended
        less than `APPEND_SECONDS` ago, and no call of a step takes so long.
        """
        found: dict[str, tuple[str, ...]] = {}
        for one in self._read():
            if one.ref not in self._ended:
                job_id = one.ref.rpartition("-")[0]
                found[job_id] = (*found.get(job_id, ()), one.node)
        return found

    def _ended_at_one_moment(self) -> set[str]:
        """Those that have ended a while ago, by two readings.

        A reading takes time. If the second finds none that has ended since the first, all was as
        the first says at the moment between the two.
        """
        ended = {one.ref for one in self._read() if one.ended}
        for _ in range(APPEND_READINGS):
            before, ended = ended, {one.ref for one in self._read() if one.ended}
            if ended <= before:
                return before
        raise JobRefusedError(
            "so many jobs append here that no moment was found between their ends; write again"
            " later",
            code="DESTINATION_BUSY",
        )

    def _read(self) -> list[Append]:
        read = partial(_read, self._ports)
        pairs = ((node, node == self._nodes[0]) for node in self._nodes)
        found = list(
            islice(chain.from_iterable(self._ports.parallel(read, pairs)), MAX_APPENDS + 1)
        )
        if len(found) > MAX_APPENDS:
            raise JobRefusedError(
                f"more than {MAX_APPENDS} jobs append at the destination, above it and below it;"
                " write again later",
                code="DESTINATION_BUSY",
            )
        return found


def _read(ports: Ports, pair: tuple[str, bool]) -> list[Append]:
    node, below = pair
    return list(islice(ports.ledger.appends(node, below=below), MAX_APPENDS + 1))
