"""The Map that is deployed, on the embedded runtime: with standard children, for want of others.

With express ones `make contract` runs it, on AWS: tests/contract/test_executions.py.
"""

from __future__ import annotations

import uuid

from tests.contract.deployed_map import OUTCOMES, machine_of, outcome
from tests.local.conftest import Local


def test_i2_a_map_fails_with_its_unit_and_leads_on_where_its_dataset_is_gone(
    local: Local, key: str
) -> None:
    made = local.machines.create_state_machine(
        name=f"map-{uuid.uuid4().hex}",
        definition=machine_of("aws", kind="STANDARD"),
        roleArn="arn:aws:iam::123456789012:role/machines",
    )
    found = {
        what: outcome(
            local.machines, made["stateMachineArn"], local.s3, local.bucket, f"{key}/", what
        )
        for what in OUTCOMES
    }
    assert found == OUTCOMES
