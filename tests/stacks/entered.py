"""The states of the deployed machine that an execution enters, over the fakes.

AWS bills each of them, and the start: https://aws.amazon.com/step-functions/pricing/.
"""

import json
from dataclasses import replace
from typing import Any

from s3commit.core.calls import routes
from s3commit.core.documents.ticket import decode_ticket, encode_ticket, execution_input
from s3commit.core.formats.layout import JobDirectory
from s3commit.core.model.errors import JobRefusedError
from s3commit.core.model.outcome import Failure
from stacks.definition import definition
from stacks.functions import FUNCTIONS
from tests.core.world import World
from tests.fakes.execution import call, complete_uploads, one_by_one

MACHINE: dict[str, Any] = definition(dict.fromkeys(FUNCTIONS, "arn"))


def entered(world: World, directory: JobDirectory) -> list[str]:
    """Along the definition's own ways; the units of a Map are states as well."""
    ticket = decode_ticket(execution_input(directory), execution=f"arn:{directory.ref}")
    found, name, following = list[str](), MACHINE["StartAt"], ""
    while name:
        state = MACHINE["States"][name]
        found.append(name)
        if state["Type"] == "Choice":
            name = next(w["Next"] for w in state["Choices"] if w["StringEquals"] == following)
            continue
        name = state.get("Next", "")
        if state["Type"] == "Wait":
            world.clock.advance(ticket.pause)
        elif state.get("Next") == routes.COUNTED:
            ticket = complete_uploads(world.ports, ticket, one_by_one)
            found += ["CompleteUnit"] * (len(ticket.completed) * (state["Type"] == "Map"))
        elif found[-1] in routes.STEPS:
            carried = json.loads(json.dumps(encode_ticket(ticket)))
            carried = replace(
                decode_ticket(carried, execution=ticket.execution),
                completed=ticket.completed,
                refusal=ticket.refusal,
            )
            try:
                ticket, following = call(world.ports, found[-1], carried)
            except JobRefusedError as error:
                ticket = replace(ticket, refusal=Failure(error.code, error.message))
                name = "AbortJob"
    return found
