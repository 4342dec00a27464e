"""Meets SCIM as clients that others wrote do: scim2-tester walks the server through the RFCs, scim2-client writes and reads people and groups.

Usage: calls.py URL TOKEN ADDRESS: where a directory is asked, with a token of it, and what it calls itself. Prints one JSON object: `checked` (how many checks of the tester), `found` (what is wrong by the tester),
`called` (the parts of the story), `failed` (name and reason).
"""

import json
import random
import sys
import traceback
import uuid

from httpx2 import Client
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_models import Error, PatchOp, PatchOperation, ResponseParameters, SearchRequest
from scim2_tester import Status, check_server

GOOD = {Status.SUCCESS, Status.COMPLIANT, Status.ACCEPTABLE}

url, token, address = sys.argv[1:4]
http = Client(base_url=url, headers={"Authorization": f"Bearer {token}"})
failed: list[dict[str, str]] = []
called: list[str] = []


def walked() -> tuple[int, list[dict[str, str]]]:
    """Everything that the tester checks, and what it does not find good."""
    random.seed(1)
    results = check_server(SyncSCIMClient(http))
    found = [
        {"status": each.status.name, "title": str(each.title), "reason": str(each.reason), "data": str(each.data)[:500]}
        for each in results
        if each.status not in GOOD
    ]
    return len(results), found


def part(story):
    """Runs one part of the story; a failure is noted and does not keep the other parts from running."""
    called.append(story.__name__)
    try:
        story()
    except Exception as error:
        line = next((str(frame.lineno) for frame in traceback.extract_tb(error.__traceback__) if frame.name == story.__name__), "")
        failed.append({"part": story.__name__, "line": line, "reason": f"{type(error).__name__}: {error}"})


def refused(status: int, scim_type: str | None, call, *args, **kwargs) -> Error:
    """The refusal, which the client could read."""
    answer = call(*args, raise_scim_errors=False, **kwargs)
    assert isinstance(answer, Error), f"it was not refused: {answer}"
    assert (answer.status, answer.scim_type) == (status, scim_type), f"refused otherwise: {answer}"
    assert answer.detail
    return answer


checked, found = walked()
scim = SyncSCIMClient(http)
scim.discover()
User, Group = scim.get_resource_model("User"), scim.get_resource_model("Group")


def name() -> str:
    return f"{uuid.uuid4()}@acme.test"


def change(*operations) -> list[PatchOperation]:
    return [PatchOperation(op=op, path=path, value=value) for op, path, value in operations]


@part
def people_are_made_read_changed_and_deleted():
    made = scim.create(User(user_name=name(), external_id="e-1", display_name="Ada", active=True))
    assert made.id and made.meta.version == 'W/"1"' and made.meta.location == f"{address}/Users/{made.id}"
    assert scim.query(User, made.id).display_name == "Ada"
    made.display_name = "Ada L"
    replaced = scim.replace(made)
    assert (replaced.display_name, replaced.meta.version) == ("Ada L", 'W/"2"')
    changed = scim.modify(User, made.id, PatchOp[User](operations=change(("replace", "active", False), ("add", "nickName", "Countess"))))
    assert (changed.active, changed.nick_name) == (False, "Countess")
    refused(409, "uniqueness", scim.create, User(user_name=made.user_name.upper()))
    scim.delete(User, made.id)
    refused(404, None, scim.query, User, made.id)
    refused(404, None, scim.delete, User, made.id)


@part
def groups_have_members():
    people = [scim.create(User(user_name=name())) for _ in range(3)]
    group = scim.create({"schemas": Group(display_name="x").schemas, "displayName": name(), "members": [{"value": people[0].id}]})
    assert [member.value for member in group.members] == [people[0].id]
    members = [{"value": person.id} for person in people[1:]]
    scim.modify(Group, group.id, PatchOp[Group](operations=change(("add", "members", members), ("remove", f'members[value eq "{people[0].id}"]', None))))
    assert sorted(member.value for member in scim.query(Group, group.id).members) == sorted(person.id for person in people[1:])
    asked = ResponseParameters(attributes=["groups"])
    assert [each.value for each in scim.query(User, people[1].id, asked).groups] == [group.id]
    scim.delete(User, people[1].id)
    assert [member.value for member in scim.query(Group, group.id).members] == [people[2].id]
    scim.delete(Group, group.id)


@part
def people_are_found_by_filters_and_page_by_page():
    prefix = uuid.uuid4().hex[:8]
    made = [scim.create(User(user_name=f"{prefix}-{number}@acme.test", title="Dr" if number % 2 else "Prof")) for number in range(7)]
    ids = [person.id for person in made]

    def found(filter: str, **more) -> list[str]:
        return [person.id for person in scim.query(User, query_parameters=SearchRequest(filter=filter, **more)).resources or []]

    assert found(f'userName eq "{made[3].user_name}"') == [ids[3]]
    assert found(f'userName sw "{prefix}" and title eq "Dr"') == ids[1::2]
    assert found(f'userName eq "{prefix}"') == []
    pages = []
    while len(pages) < len(ids):
        page = scim.query(User, query_parameters=SearchRequest(filter=f'userName sw "{prefix}"', start_index=len(pages) + 1, count=3))
        assert (page.total_results, page.start_index) == (7, len(pages) + 1)
        pages += [person.id for person in page.resources]
    assert pages == ids
    searched = scim.search(User, SearchRequest(filter=f'userName eq "{made[0].user_name}"', attributes=["userName"]))
    assert [(person.id, person.title) for person in searched.resources] == [(ids[0], None)]
    # The client itself refuses what cannot be read.
    refused(400, "invalidFilter", scim.query, User, query_parameters={"filter": "userName is ada"}, check_request_payload=False)


@part
def everything_is_searched_at_the_root():
    person = scim.create(User(user_name=name()))
    group = scim.create(Group(display_name=name()))
    found = scim.search(SearchRequest(filter=f'id eq "{person.id}" or displayName eq "{group.display_name}"'))
    assert sorted(each.id for each in found.resources) == sorted([person.id, group.id])
    assert {type(each) for each in found.resources} == {User, Group}
    listed = scim.query(query_parameters=SearchRequest(filter=f'meta.resourceType eq "Group" and displayName eq "{group.display_name}"'))
    assert [each.id for each in listed.resources] == [group.id]


@part
def versions_keep_changes_apart():
    known = scim.create(User(user_name=name(), title="Dr"))
    assert scim.query(known) is known
    other = scim.query(User, known.id)
    other.title = "Prof"
    scim.replace(other)
    known.title = "Mx"
    refused(412, None, scim.replace, known)
    assert scim.query(User, known.id).title == "Prof"


print(json.dumps({"checked": checked, "found": found, "called": called, "failed": failed}))
