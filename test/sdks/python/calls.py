"""Calls every method of the Python SDK whose area Gatehouse serves, and holds each answer to what a customer would expect.

Usage: calls.py URL KEY. Prints one JSON object: `called` (names), `failed` (name and reason), `forgotten` (methods that nobody called).
"""

import inspect
import json
import sys
import threading
import time
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer

from workos import WorkOSClient
from workos._errors import ConflictError, NotFoundError, UnprocessableEntityError
from workos.authorization._resource import (
    ParentByExternalId,
    ParentById,
    ParentResourceByExternalId,
    ParentResourceById,
    ResourceTargetByExternalId,
    ResourceTargetById,
)
from workos.authorization.models import ReplaceGroupRoleAssignmentEntry
from workos.organization_membership._resource import RoleMultiple, RoleSingle
from workos.organizations.models import OrganizationDomainData
from workos.user_management._resource import PasswordHashed, PasswordPlaintext

AREAS = (
    "api_keys",
    "authorization",
    "events",
    "groups",
    "organization_domains",
    "organization_membership",
    "organizations",
    "user_management",
    "webhooks",
)

# Methods of these areas whose operations Gatehouse does not have.
ABSENT = {
    "organizations": {
        "create_it_contact",
        "delete_it_contact",
        "get_audit_log_configuration",
        "invite_it_contact",
        "list_authorized_applications",
        "list_it_contacts",
        "revoke_it_contact",
    },
}
# Of these areas only the methods named here have their operations.
PRESENT = {
    "user_management": {"create_user", "create_user_api_key", "delete_user", "get_user", "get_user_by_external_id", "list_user_api_keys", "list_users", "update_user"},
}

called: set[str] = set()
failed: list[dict[str, str]] = []


class Area:
    """An area of the client that notes which of its methods were called."""

    def __init__(self, client: WorkOSClient, name: str) -> None:
        self._name = name
        self._area = getattr(client, name)

    def __getattr__(self, method: str):
        def call(*args, **kwargs):
            called.add(f"{self._name}.{method}")
            return getattr(self._area, method)(*args, **kwargs)

        return call

    def methods(self) -> set[str]:
        names = {name for name, _ in inspect.getmembers(self._area, callable) if not name.startswith("_")}
        return PRESENT.get(self._name, names - ABSENT.get(self._name, set()))


class Receiver:
    """Takes webhooks on loopback."""

    def __init__(self) -> None:
        self.received: list[tuple[bytes, str]] = []
        received = self.received

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received.append((body, self.headers["WorkOS-Signature"]))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()


def eventually(look, seconds: float = 30):
    """What `look` answers, as soon as that is something."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > deadline:
            raise AssertionError("it did not come in time")
        time.sleep(0.1)
    return found


def refused(error, call, *args, **kwargs) -> None:
    try:
        call(*args, **kwargs)
    except error:
        return
    raise AssertionError(f"it was not refused with {error.__name__}")


def part(story):
    """Runs one part of the story; a failure is noted and does not keep the other parts from running."""
    try:
        story()
    except Exception as error:
        line = next((frame.lineno for frame in inspect.trace() if frame.function == story.__name__), 0)
        failed.append({"part": story.__name__, "line": str(line), "reason": f"{type(error).__name__}: {error}"})


url, key = sys.argv[1:3]
client = WorkOSClient(api_key=key, client_id="client_of_the_spec", base_url=f"{url}/", max_retries=0)
areas = {name: Area(client, name) for name in AREAS}
organizations, domains, users = areas["organizations"], areas["organization_domains"], areas["user_management"]
memberships, groups, authorization = areas["organization_membership"], areas["groups"], areas["authorization"]
events, webhooks, api_keys = areas["events"], areas["webhooks"], areas["api_keys"]


@part
def organizations_and_domains():
    made = organizations.create_organization(
        name="Python Acme",
        external_id="python-1",
        metadata={"tier": "gold"},
        domain_data=[OrganizationDomainData(domain="python-sdk.test", state="verified")],
    )
    assert (made.name, made.external_id, made.metadata) == ("Python Acme", "python-1", {"tier": "gold"})
    assert made.domains[0].domain == "python-sdk.test"
    assert organizations.get_organization(made.id) == made
    assert organizations.get_organization_by_external_id("python-1") == made
    changed = organizations.update_organization(made.id, name="Python Acme Ltd", stripe_customer_id="cus_python", metadata={"seats": "3"}, external_id=None)
    assert (changed.name, changed.external_id) == ("Python Acme Ltd", None)
    assert changed.metadata == {"tier": "gold", "seats": "3"}
    assert changed.stripe_customer_id == "cus_python"
    assert [found.id for found in organizations.list_organizations(search="python acme")] == [made.id]
    assert [found.id for found in organizations.list_organizations(domains=["python-sdk.test", "nobodys.test"])] == [made.id]
    for number in range(3):
        organizations.create_organization(name=f"Paged {number}")
    assert len(list(organizations.list_organizations(limit=2).auto_paging_iter())) >= 4

    domain = domains.create_organization_domain(domain="python-two.test", organization_id=made.id)
    assert domains.get_organization_domain(domain.id) == domain
    assert domains.verify_organization_domain(domain.id).state == "pending"
    domains.delete_organization_domain(domain.id)
    refused(NotFoundError, domains.get_organization_domain, domain.id)

    organizations.delete_organization(made.id)
    refused(NotFoundError, organizations.get_organization, made.id)
    refused(UnprocessableEntityError, organizations.create_organization, name="")


@part
def users_and_memberships():
    made = users.create_user(
        email="ada@python.test",
        password=PasswordPlaintext(password="ride-a-giraffe-7"),
        first_name="Ada",
        last_name=None,
        email_verified=None,
        external_id="python-user",
        metadata={"language": "en"},
    )
    assert (made.email, made.first_name, made.last_name, made.email_verified) == ("ada@python.test", "Ada", None, False)
    users.create_user(
        email="imported@python.test",
        password=PasswordHashed(password_hash="$2b$04$C8t7t9bmSJCXdzcL1PtVGuwbpeGHXpL7fQB0sIZ6VVpvMUHzSg6/a", password_hash_type="bcrypt"),
    )
    assert users.get_user(made.id).to_dict() == made.to_dict()
    assert users.get_user_by_external_id("python-user") == users.get_user(made.id)
    assert [found.id for found in users.list_users(email="ada@python.test")] == [made.id]
    assert users.update_user(made.id, first_name="Augusta", metadata={"team": "engines"}).metadata == {"language": "en", "team": "engines"}

    organization = organizations.create_organization(name="Python members")
    membership = memberships.create_organization_membership(user_id=made.id, organization_id=organization.id, role=RoleSingle(role_slug="admin"))
    assert (membership.status, membership.role.slug) == ("active", "admin")
    assert memberships.get_organization_membership(membership.id).id == membership.id
    assert [found.id for found in memberships.list_organization_memberships(organization_id=organization.id, statuses=["active", "inactive"])] == [membership.id]
    assert [found.id for found in users.list_users(organization_id=organization.id)] == [made.id]
    assert memberships.update_organization_membership(membership.id, role=RoleSingle(role_slug="member")).role.slug == "member"
    assert memberships.update_organization_membership(membership.id, role=RoleMultiple(role_slugs=["member"])).role.slug == "member"
    assert memberships.deactivate_organization_membership(membership.id).status == "inactive"
    assert memberships.reactivate_organization_membership(membership.id).status == "active"
    assert list(memberships.list_organization_membership_groups(membership.id)) == []
    memberships.delete_organization_membership(membership.id)
    refused(NotFoundError, memberships.get_organization_membership, membership.id)
    users.delete_user(made.id)
    refused(NotFoundError, users.get_user, made.id)


@part
def groups_of_an_organization():
    organization = organizations.create_organization(name="Python groups")
    members = [
        memberships.create_organization_membership(user_id=users.create_user(email=f"{name}@groups.python.test").id, organization_id=organization.id)
        for name in ("one", "two")
    ]
    group = groups.create_organization_group(organization.id, name="Engineering", description="Builds")
    assert groups.get_organization_group(organization.id, group.id) == group
    assert [found.id for found in groups.list_organization_groups(organization.id, search="engin")] == [group.id]
    assert [found.id for found in groups.list_organization_groups(organization.id, search="nobody")] == []
    assert groups.update_organization_group(organization.id, group.id, description=None).description is None
    assert groups.create_group_organization_membership(organization.id, group.id, organization_membership_id=members[0].id).id == group.id
    listed = list(groups.list_group_organization_memberships(organization.id, group.id))
    assert [(found.id, found.user.email) for found in listed] == [(members[0].id, "one@groups.python.test")]
    groups.update_group_organization_memberships(organization.id, group.id, add=[members[1].id], remove=[members[0].id])
    assert [found.id for found in groups.list_group_organization_memberships(organization.id, group.id)] == [members[1].id]
    assert [found.id for found in memberships.list_organization_membership_groups(members[1].id)] == [group.id]
    groups.delete_group_organization_membership(organization.id, group.id, members[1].id)
    groups.delete_organization_group(organization.id, group.id)
    refused(NotFoundError, groups.get_organization_group, organization.id, group.id)


@part
def keys_of_organizations_and_users():
    organization = organizations.create_organization(name="Python keys")
    made = api_keys.create_organization_api_key(organization.id, name="Build server", permissions=["widgets:sso:manage"])
    assert (made.value.startswith("sk_"), made.owner.id, made.permissions, made.expires_at) == (True, organization.id, ["widgets:sso:manage"], None)
    valid = api_keys.create_validation(value=made.value).api_key
    assert (valid.id, valid.owner.id, valid.last_used_at is not None) == (made.id, organization.id, True)
    assert api_keys.create_validation(value="sk_unknown").api_key is None
    assert [found.id for found in api_keys.list_organization_api_keys(organization.id)] == [made.id]

    tomorrow = (datetime.now(timezone.utc) + timedelta(days=1)).replace(microsecond=0)
    assert api_keys.create_api_key_expire(made.id, expires_at=tomorrow.isoformat()).expires_at == tomorrow
    assert api_keys.create_api_key_expire(made.id, expires_at=None).expires_at is None
    assert api_keys.create_api_key_expire(made.id).expires_at <= datetime.now(timezone.utc)
    assert api_keys.create_validation(value=made.value).api_key is None
    refused(ConflictError, api_keys.create_api_key_expire, made.id)

    user = users.create_user(email="keys@python.test")
    memberships.create_organization_membership(user_id=user.id, organization_id=organization.id)
    own = users.create_user_api_key(user.id, name="Laptop", organization_id=organization.id)
    assert (own.owner.id, own.owner.organization_id) == (user.id, organization.id)
    assert [found.id for found in users.list_user_api_keys(user.id, organization_id=organization.id)] == [own.id]
    assert api_keys.create_validation(value=own.value).api_key.owner.organization_id == organization.id
    api_keys.delete_api_key(own.id)
    assert api_keys.create_validation(value=own.value).api_key is None
    refused(NotFoundError, api_keys.delete_api_key, own.id)


@part
def permissions_and_roles():
    permission = authorization.create_permission(slug="python:read", name="Read", description=None, resource_type_slug="sdk_project")
    assert authorization.get_permission("python:read") == permission
    assert "python:read" in [found.slug for found in authorization.list_permissions(limit=100)]
    assert authorization.update_permission("python:read", name="Read all").name == "Read all"
    authorization.create_permission(slug="python:bill", name="Bill")
    authorization.create_permission(slug="python:gone", name="Gone")
    authorization.delete_permission("python:gone")
    refused(NotFoundError, authorization.get_permission, "python:gone")
    refused(ConflictError, authorization.create_permission, slug="python:read", name="Twin")

    role = authorization.create_environment_role(slug="python-editor", name="Editor", resource_type_slug="sdk_project")
    assert authorization.get_environment_role("python-editor") == role
    assert "python-editor" in [found.slug for found in authorization.list_environment_roles().data]
    assert authorization.update_environment_role("python-editor", description="Writes").description == "Writes"
    assert authorization.set_environment_role_permissions("python-editor", permissions=[]).permissions == []
    assert authorization.add_environment_role_permission("python-editor", body_slug="python:read").permissions == ["python:read"]

    organization = organizations.create_organization(name="Python roles")
    own = authorization.create_organization_role(organization.id, slug="org-python", name="Ours")
    assert authorization.get_organization_role(organization.id, "org-python") == own
    assert "org-python" in [found.slug for found in authorization.list_organization_roles(organization.id).data]
    assert authorization.update_organization_role(organization.id, "org-python", name="Still ours").name == "Still ours"
    assert authorization.set_organization_role_permissions(organization.id, "org-python", permissions=["python:bill"]).permissions == ["python:bill"]
    authorization.remove_organization_role_permission(organization.id, "org-python", "python:bill")
    assert authorization.add_organization_role_permission(organization.id, "org-python", body_slug="python:bill").permissions == ["python:bill"]
    authorization.delete_organization_role(organization.id, "org-python")
    refused(NotFoundError, authorization.get_organization_role, organization.id, "org-python")


@part
def resources_and_access():
    organization = organizations.create_organization(name="Python resources")
    user = users.create_user(email="reader@python.test")
    member = memberships.create_organization_membership(user_id=user.id, organization_id=organization.id).id
    workspace = authorization.create_resource(external_id="w-1", name="Workspace", resource_type_slug="sdk_workspace", organization_id=organization.id)
    project = authorization.create_resource(
        external_id="p-1",
        name="Project",
        resource_type_slug="sdk_project",
        organization_id=organization.id,
        description=None,
        parent_resource=ParentResourceById(parent_resource_id=workspace.id),
    )
    other = authorization.create_resource(
        external_id="p-2",
        name="Other",
        resource_type_slug="sdk_project",
        organization_id=organization.id,
        parent_resource=ParentResourceByExternalId(parent_resource_type_slug="sdk_workspace", parent_resource_external_id="w-1"),
    )
    named = (organization.id, "sdk_project", "p-1")
    assert authorization.get_resource(project.id) == project
    assert authorization.get_resource_by_external_id(*named) == project
    assert authorization.update_resource(project.id, description="One").description == "One"
    assert authorization.update_resource_by_external_id(*named, name="First").name == "First"
    children = {"organization_id": organization.id, "resource_type_slug": "sdk_project", "order": "asc"}
    assert [found.id for found in authorization.list_resources(**children, parent=ParentById(parent_resource_id=workspace.id))] == [project.id, other.id]
    by_name = ParentByExternalId(parent_resource_type_slug="sdk_workspace", parent_external_id="w-1")
    assert [found.id for found in authorization.list_resources(**children, parent=by_name)] == [project.id, other.id]

    on_project = ResourceTargetById(resource_id=project.id)
    on_other = ResourceTargetByExternalId(resource_external_id="p-2", resource_type_slug="sdk_project")

    def may(target) -> bool:
        return authorization.check(member, permission_slug="python:read", resource_target=target).authorized

    assert not may(on_project)
    assigned = authorization.assign_role(member, role_slug="python-editor", resource_target=on_project)
    assert may(on_project) and not may(on_other)
    assert [found.id for found in authorization.list_role_assignments(member)] == [assigned.id]
    assert [found.id for found in authorization.list_role_assignments_for_resource(project.id)] == [assigned.id]
    assert [found.id for found in authorization.list_role_assignments_for_resource_by_external_id(*named, role_slug="python-editor")] == [assigned.id]
    assert [found.slug for found in authorization.list_effective_permissions(member, project.id)] == ["python:read"]
    assert [found.slug for found in authorization.list_effective_permissions_by_external_id(member, "sdk_project", "p-1")] == ["python:read"]
    below = ParentResourceById(parent_resource_id=workspace.id)
    assert [found.id for found in authorization.list_resources_for_membership(member, permission_slug="python:read", parent_resource=below)] == [project.id]
    reaching = list(authorization.list_memberships_for_resource(project.id, permission_slug="python:read"))
    assert [(found.id, found.user.id) for found in reaching] == [(member, user.id)]
    reaching = list(authorization.list_memberships_for_resource_by_external_id(*named, permission_slug="python:read", assignment="direct"))
    assert [(found.id, found.user.id) for found in reaching] == [(member, user.id)]
    # The same words again after they were taken back are another command, although this SDK may send them with the same key.
    authorization.remove_role(member, role_slug="python-editor", resource_target=on_project)
    assert not may(on_project)
    again = authorization.assign_role(member, role_slug="python-editor", resource_target=on_project)
    assert may(on_project)
    authorization.remove_role_assignment(member, again.id)
    assert not may(on_project)

    group = groups.create_organization_group(organization.id, name="Readers")
    groups.create_group_organization_membership(organization.id, group.id, organization_membership_id=member)
    granted = authorization.create_group_role_assignment(group.id, role_slug="python-editor", resource_id=project.id)
    assert may(on_project)
    assert authorization.get_group_role_assignment(group.id, granted.id).id == granted.id
    assert [found.id for found in authorization.list_group_role_assignments(group.id)] == [granted.id]
    sources = [found.source for found in authorization.list_role_assignments(member)]
    assert [(source.type, source.group.id) for source in sources] == [("group", group.id)]
    on_both = [ReplaceGroupRoleAssignmentEntry(role_slug="python-editor", resource_id=found.id) for found in (project, other)]
    authorization.patch_group_role_assignments(group.id, add=[on_both[1]], remove=[on_both[0]])
    assert may(on_other) and not may(on_project)
    replaced = authorization.update_group_role_assignments(group.id, role_assignments=on_both)
    assert len(replaced.data) == 2
    authorization.delete_group_role_assignments(group.id, role_slug="python-editor", resource_external_id="p-2", resource_type_slug="sdk_project")
    assert may(on_project) and not may(on_other)
    authorization.delete_group_role_assignment(group.id, list(authorization.list_group_role_assignments(group.id))[0].id)
    assert not may(on_project)

    refused(ConflictError, authorization.delete_resource, workspace.id)
    authorization.delete_resource_by_external_id(organization.id, "sdk_project", "p-2")
    authorization.delete_resource(workspace.id, cascade_delete=True)
    refused(NotFoundError, authorization.get_resource, project.id)


@part
def events_and_webhooks():
    receiver = Receiver()
    endpoint = webhooks.create_webhook_endpoint(endpoint_url=receiver.url, events=["organization.created"])
    assert endpoint.id in [found.id for found in webhooks.list_webhook_endpoints()]
    began = datetime.now(timezone.utc) - timedelta(seconds=5)
    made = organizations.create_organization(name="Python événement")
    organizations.update_organization(made.id, name="Python event")
    wanted = ["organization.created", "organization.updated"]
    seen = events.list_events(events=wanted, organization_id=made.id, range_start=began, range_end=datetime.now(timezone.utc) + timedelta(minutes=1))
    assert [found.event for found in seen] == wanted
    first = events.list_events(events=wanted, organization_id=made.id, limit=1)
    assert [found.event for found in events.list_events(events=wanted, organization_id=made.id, after=first.after)] == wanted[1:]

    body, signature = eventually(lambda: receiver.received)[0]
    webhooks.verify_header(event_body=body, event_signature=signature, secret=endpoint.secret)
    delivered = webhooks.verify_event(event_body=body, event_signature=signature, secret=endpoint.secret)
    assert (delivered.event, delivered.id) == ("organization.created", first.data[0].id)
    refused(ValueError, webhooks.verify_header, event_body=body, event_signature=signature, secret=f"{endpoint.secret}x")

    assert webhooks.update_webhook_endpoint(endpoint.id, status="disabled").status == "disabled"
    webhooks.delete_webhook_endpoint(endpoint.id)
    refused(NotFoundError, webhooks.delete_webhook_endpoint, endpoint.id)


forgotten = [f"{name}.{method}" for name, area in areas.items() for method in area.methods() if f"{name}.{method}" not in called]
print(json.dumps({"called": sorted(called), "failed": failed, "forgotten": sorted(forgotten)}))
