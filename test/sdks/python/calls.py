"""Calls every method of the Python SDK whose area Gatehouse serves, and holds each answer to what a customer would expect.

Usage: calls.py URL KEY CLIENT_ID. Prints one JSON object: `called` (names), `failed` (name and reason), `forgotten` (methods that nobody called).
"""

import base64
import hashlib
import hmac
import http.client
import inspect
import json
import re
import struct
import sys
import threading
import time
import urllib.request
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import urlsplit

import jwt
from cryptography.fernet import Fernet
from workos import WorkOSClient
from workos._errors import (
    AuthenticationFlowError,
    BadRequestError,
    ConflictError,
    EmailVerificationRequiredError,
    MfaChallengeError,
    NotFoundError,
    OrganizationSelectionRequiredError,
    RadarChallengeError,
    UnprocessableEntityError,
)
from workos.audit_logs.models import AuditLogEvent, AuditLogEventActor, AuditLogEventContext, AuditLogEventTarget
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
from workos.session import seal_session_from_auth_response
from workos.user_management._resource import PasswordHashed, PasswordPlaintext

AREAS = (
    "api_keys",
    "audit_logs",
    "authorization",
    "directory_sync",
    "events",
    "groups",
    "multi_factor_auth",
    "organization_domains",
    "organization_membership",
    "organizations",
    "radar",
    "user_management",
    "webhooks",
    "widgets",
)

# Methods of these areas whose operations Gatehouse does not have.
ABSENT = {
    "audit_logs": {
        "create_schema",
        "get_organization_audit_logs_retention",
        "list_action_schemas",
        "list_actions",
        "update_organization_audit_logs_retention",
    },
    "directory_sync": {"create_directory_sync"},
    "organizations": {
        "create_it_contact",
        "delete_it_contact",
        "get_audit_log_configuration",
        "invite_it_contact",
        "list_authorized_applications",
        "list_it_contacts",
        "revoke_it_contact",
    },
    "user_management": {
        "confirm_email_change",
        "create_authkit_oauth_resource",
        "create_device",
        "create_radar_challenge",
        "create_waitlist_entry",
        "create_waitlist_entry_approve",
        "create_waitlist_entry_deny",
        "delete_authkit_oauth_resource",
        "delete_user_authorized_application",
        "delete_waitlist_entry",
        "get_authorization_url",
        "get_authorization_url_with_pkce",
        "get_radar_challenge",
        "get_waitlist",
        "list_authkit_oauth_resources",
        "list_user_authorized_applications",
        "list_waitlist_entries",
        "list_waitlists",
        "send_email_change",
    },
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
        return names - ABSENT.get(self._name, set())


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


def refused(error, call, *args, **kwargs):
    """The refusal, which holds what its client needs to go on."""
    try:
        call(*args, **kwargs)
    except error as refusal:
        return refusal
    raise AssertionError(f"it was not refused with {error.__name__}")


def part(story):
    """Runs one part of the story; a failure is noted and does not keep the other parts from running."""
    try:
        story()
    except Exception as error:
        line = next((frame.lineno for frame in inspect.trace() if frame.function == story.__name__), 0)
        failed.append({"part": story.__name__, "line": str(line), "reason": f"{type(error).__name__}: {error}"})


def code_of(secret: str, drift: int = 0) -> str:
    """What an authenticator app shows."""
    digest = hmac.new(base64.b32decode(secret), struct.pack(">Q", int(time.time()) // 30 + drift), hashlib.sha1).digest()
    offset = digest[-1] & 15
    return str((struct.unpack(">I", digest[offset : offset + 4])[0] & 0x7FFFFFFF) % 1_000_000).zfill(6)


def code_sent_to(email: str, words: str) -> str:
    """The code in the message to an address that has these words."""

    def look():
        with urllib.request.urlopen(f"{url}/dev/mailbox/messages") as answer:
            messages = json.load(answer)["data"]
        texts = [message["text"] for message in messages if message["to"] == email and words in message["text"]]
        return texts and re.search(r"\b\d{6}\b", texts[0])

    return eventually(look).group()


def redirection_of(address: str):
    """Where a browser is sent that goes there."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.netloc)
    connection.request("GET", f"{parts.path}?{parts.query}")
    answer = connection.getresponse()
    connection.close()
    return answer.status, answer.headers["Location"]


url, key, client_id = sys.argv[1:4]
client = WorkOSClient(api_key=key, client_id=client_id, base_url=f"{url}/", max_retries=0)
areas = {name: Area(client, name) for name in AREAS}
organizations, domains, users = areas["organizations"], areas["organization_domains"], areas["user_management"]
memberships, groups, authorization = areas["organization_membership"], areas["groups"], areas["authorization"]
events, webhooks, api_keys = areas["events"], areas["webhooks"], areas["api_keys"]
directories = areas["directory_sync"]
factors, radar, widgets = areas["multi_factor_auth"], areas["radar"], areas["widgets"]
audit_logs = areas["audit_logs"]

PASSWORD = "ride-a-giraffe-7"


def claims_of(token: str, **expected):
    """What a token says, after PyJWT verified it with a key of the key set."""
    signing_key = jwt.PyJWKClient(users.get_jwks_url()).get_signing_key_from_jwt(token)
    return jwt.decode(token, signing_key.key, algorithms=["RS256"], options={"require": ["exp", "iat", "sub"]}, **{"audience": client_id, **expected})


def session_of(signed) -> str:
    return claims_of(signed.access_token)["sid"]


def person(email: str, **fields):
    return users.create_user(email=email, email_verified=True, password=PasswordPlaintext(password=PASSWORD), **fields)


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
def codes_and_passwords():
    sent = users.create_magic_auth(email="magic@python.test", ip_address="192.0.2.7", user_agent="Firefox", locale="de")
    shown = users.get_magic_auth(sent.id)
    assert (shown.code, shown.email, shown.user_id) == (sent.code, "magic@python.test", sent.user_id)
    signed = users.authenticate_with_magic_auth(email="magic@python.test", code=sent.code, ip_address="192.0.2.7", user_agent="Firefox")
    assert (signed.user.id, signed.user.email_verified, signed.authentication_method) == (sent.user_id, True, "MagicAuth")
    assert claims_of(signed.access_token)["sub"] == sent.user_id
    assert signed.user.last_sign_in_at is not None
    # Stored a moment later.
    assert eventually(lambda: users.get_user(sent.user_id).last_sign_in_at) == signed.user.last_sign_in_at
    assert users.get_user_identities(sent.user_id) == []
    refused(BadRequestError, users.authenticate_with_magic_auth, email="magic@python.test", code="000000" if sent.code != "000000" else "000001")

    made = users.create_user(email="unproven@python.test", password=PasswordPlaintext(password=PASSWORD))
    needed = refused(EmailVerificationRequiredError, users.authenticate_with_password, email=made.email, password=PASSWORD)
    assert needed.email == "unproven@python.test"
    verification = users.get_email_verification(needed.email_verification_id)
    signed = users.authenticate_with_email_verification(code=verification.code, pending_authentication_token=needed.pending_authentication_token)
    assert (signed.user.id, signed.user.email_verified, signed.authentication_method) == (made.id, True, "Password")
    assert users.authenticate_with_password(email=made.email, password=PASSWORD, device_id="laptop").user.id == made.id
    refused(BadRequestError, users.authenticate_with_password, email=made.email, password="ride-an-ostrich-8")

    other = users.create_user(email="confirmed@python.test")
    assert users.send_verification_email(other.id, locale="de").user.id == other.id
    code = code_sent_to("confirmed@python.test", "")
    assert users.verify_email(other.id, code=code).user.email_verified

    reset = users.reset_password(email=made.email, locale="de")
    assert users.get_password_reset(reset.id).password_reset_token == reset.password_reset_token
    assert users.confirm_password_reset(token=reset.password_reset_token, new_password="ride-an-ostrich-8").user.id == made.id
    refused(BadRequestError, users.authenticate_with_password, email=made.email, password=PASSWORD)
    body = {"grant_type": "password", "client_id": client_id, "client_secret": key, "email": made.email, "password": "ride-an-ostrich-8"}
    assert users.create_authenticate(body=body).user.id == made.id

    # Nothing issues these yet, so that a code is always one that nobody knows.
    for unknown in (
        lambda: users.authenticate_with_code(code="nobodys"),
        lambda: users.authenticate_with_code_pkce(code="nobodys", code_verifier="v" * 43),
        lambda: users.authenticate_with_device_code(device_code="nobodys"),
    ):
        assert refused(BadRequestError, unknown).error == "invalid_grant"
    by_text = refused(BadRequestError, users.authenticate_with_radar_sms_challenge, code="123456", pending_authentication_token="nobodys", verification_id="nobodys")
    assert by_text.error == "invalid_request"


@part
def organizations_and_sessions():
    made = person("selects@python.test")
    first, second = (organizations.create_organization(name=f"Python selects {number}") for number in (1, 2))
    for organization, role in ((first, "member"), (second, "admin")):
        memberships.create_organization_membership(user_id=made.id, organization_id=organization.id, role=RoleSingle(role_slug=role))
    needed = refused(OrganizationSelectionRequiredError, users.authenticate_with_password, email=made.email, password=PASSWORD)
    assert sorted(found["id"] for found in needed.organizations) == sorted([first.id, second.id])
    signed = users.authenticate_with_organization_selection(pending_authentication_token=needed.pending_authentication_token, organization_id=first.id)
    assert signed.organization_id == first.id
    claims = claims_of(signed.access_token)
    assert (claims["org_id"], claims["role"]) == (first.id, "member")

    switched = users.authenticate_with_refresh_token(refresh_token=signed.refresh_token, organization_id=second.id)
    claims = claims_of(switched.access_token)
    assert (claims["org_id"], claims["role"], claims["sid"]) == (second.id, "admin", session_of(signed))
    listed = list(users.list_sessions(made.id))
    assert [(found.id, found.status, found.auth_method) for found in listed] == [(claims["sid"], "active", "password")]
    users.revoke_session(session_id=claims["sid"])
    assert refused(BadRequestError, users.authenticate_with_refresh_token, refresh_token=switched.refresh_token).error == "invalid_grant"
    assert [found.id for found in users.list_sessions(made.id) if found.status == "active"] == []

    signed = users.authenticate_with_organization_selection(
        pending_authentication_token=refused(AuthenticationFlowError, users.authenticate_with_password, email=made.email, password=PASSWORD).pending_authentication_token,
        organization_id=second.id,
    )
    address = users.get_logout_url(session_id=session_of(signed), return_to="https://sdk.test/bye")
    assert redirection_of(address) == (302, "https://sdk.test/bye")
    refused(BadRequestError, users.authenticate_with_refresh_token, refresh_token=signed.refresh_token)

    keys = users.get_jwks(client_id).keys
    assert all((found.alg, found.kty, found.use, len(found.x_5_c)) == ("RS256", "RSA", "sig", 1) for found in keys)
    assert jwt.get_unverified_header(signed.access_token)["kid"] in [found.kid for found in keys]


@part
def sealed_sessions():
    made = person("sealed@python.test")
    organization = organizations.create_organization(name="Python seals")
    memberships.create_organization_membership(user_id=made.id, organization_id=organization.id, role=RoleSingle(role_slug="admin"))
    signed = users.authenticate_with_password(email=made.email, password=PASSWORD)
    password = Fernet.generate_key().decode()
    sealed = seal_session_from_auth_response(
        access_token=signed.access_token, refresh_token=signed.refresh_token, user=signed.user.to_dict(), cookie_password=password
    )
    seen = users.authenticate_with_session_cookie(session_data=sealed, cookie_password=password)
    assert (seen.authenticated, seen.session_id, seen.organization_id, seen.role) == (True, session_of(signed), organization.id, "admin")
    assert (seen.roles, seen.user["id"]) == (["admin"], made.id)
    session = users.load_sealed_session(session_data=sealed, cookie_password=password)
    refreshed = session.refresh(organization_id=organization.id)
    assert (refreshed.authenticated, refreshed.session_id, refreshed.user["email"]) == (True, seen.session_id, "sealed@python.test")
    assert session.authenticate().session_id == seen.session_id
    forged = f"{signed.access_token[:-8]}AAAAAAAA"
    wrong = seal_session_from_auth_response(access_token=forged, refresh_token=signed.refresh_token, user={"id": made.id}, cookie_password=password)
    assert not users.authenticate_with_session_cookie(session_data=wrong, cookie_password=password).authenticated
    assert redirection_of(session.get_logout_url(return_to="https://sdk.test/bye")) == (302, "https://sdk.test/bye")
    assert not session.refresh().authenticated


@part
def second_factors():
    made = person("factors@python.test")
    enrolled = factors.create_user_auth_factor(made.id, type="totp", totp_issuer="Python", totp_user="factors@python.test")
    factor, secret = enrolled.authentication_factor, enrolled.authentication_factor.totp.secret
    assert (factor.user_id, factor.totp.qr_code.startswith("data:image/png;base64,")) == (made.id, True)
    verified = factors.verify_challenge(enrolled.authentication_challenge.id, code=code_of(secret))
    assert (verified.valid, verified.challenge.authentication_factor_id) == (True, factor.id)
    needed = refused(MfaChallengeError, users.authenticate_with_password, email=made.email, password=PASSWORD)
    assert [found["id"] for found in needed.authentication_factors] == [factor.id]
    challenge = factors.challenge_factor(factor.id)
    # A code works once, and the next one is taken up to half a minute early.
    signed = users.authenticate_with_totp(
        code=code_of(secret, 1), pending_authentication_token=needed.pending_authentication_token, authentication_challenge_id=challenge.id
    )
    assert (signed.user.id, signed.authentication_method) == (made.id, "Password")
    assert [found.id for found in factors.list_user_auth_factors(made.id)] == [factor.id]
    assert factors.get_factor(factor.id).id == factor.id

    own = factors.enroll_factor(type="generic_otp")
    asked = factors.challenge_factor(own.id)
    assert factors.verify_challenge(asked.id, code=asked.code).valid
    for each in (factor, own):
        factors.delete_factor(each.id)
        refused(NotFoundError, factors.get_factor, each.id)
    assert users.authenticate_with_password(email=made.email, password=PASSWORD).user.id == made.id


@part
def second_factors_by_text():
    made, phone = person("texts@python.test"), "+4915113000001"
    factor = factors.enroll_factor(type="sms", phone_number=phone, user_id=made.id)
    assert (factor.type, factor.sms.phone_number) == ("sms", phone)
    enrolment = factors.challenge_factor(factor.id, sms_template="To enrol: {{code}}")
    assert factors.verify_challenge(enrolment.id, code=code_sent_to(phone, "To enrol: ")).valid
    needed = refused(MfaChallengeError, users.authenticate_with_password, email=made.email, password=PASSWORD)
    assert [(found["id"], found["type"]) for found in needed.authentication_factors] == [(factor.id, "sms")]
    challenge = factors.challenge_factor(factor.id, sms_template="To sign in: {{code}}")
    signed = users.authenticate_with_totp(
        code=code_sent_to(phone, "To sign in: "),
        pending_authentication_token=needed.pending_authentication_token,
        authentication_challenge_id=challenge.id,
    )
    assert signed.user.id == made.id
    by_other = refused(UnprocessableEntityError, factors.enroll_factor, type="sms", phone_number="+4915113000002", user_id=made.id)
    assert by_other.code == "verified_phone_number_exists"


@part
def invitations_to_organizations():
    organization = organizations.create_organization(name="Python invites")
    inviter = person("inviter@python.test")
    made = users.send_invitation(
        email="invited@python.test", organization_id=organization.id, role_slug="admin", expires_in_days=3, inviter_user_id=inviter.id, locale="de"
    )
    assert (made.state, made.organization_id, made.inviter_user_id) == ("pending", organization.id, inviter.id)
    assert users.get_invitation(made.id) == made
    assert users.find_invitation_by_token(made.token) == made
    again = users.resend_invitation(made.id, locale="en")
    assert [found.token for found in users.list_invitations(organization_id=organization.id, email="invited@python.test")] == [again.token]
    sent = users.create_magic_auth(email="invited@python.test", invitation_token=again.token)
    signed = users.authenticate_with_magic_auth(email="invited@python.test", code=sent.code, invitation_token=again.token)
    assert (signed.organization_id, users.get_invitation(made.id).state) == (organization.id, "accepted")
    other = users.send_invitation(email=inviter.email, organization_id=organization.id)
    assert users.accept_invitation(other.id).accepted_user_id == inviter.id
    assert users.revoke_invitation(users.send_invitation(email="nobody@python.test").id).state == "revoked"


@part
def risk_and_widgets():
    told = {"ip_address": "198.51.100.7", "user_agent": "Mozilla/5.0", "email": "risk@python.test", "auth_method": "Password", "action": "login"}
    attempt = radar.create_attempt(**told)
    assert (attempt.verdict, attempt.control) == ("allow", None)
    radar.update_attempt(attempt.attempt_id, challenge_status="success", attempt_status="success")
    radar.add_list_entry("email", "block", entry="risk@python.test")
    blocked = radar.create_attempt(**told)
    assert (blocked.verdict, blocked.control, blocked.blocklist_type) == ("block", "restriction", "email")
    assert radar.add_list_entry("email", "block", entry="risk@python.test").message
    radar.remove_list_entry("email", "block", entry="risk@python.test")
    assert radar.create_attempt(**told).verdict == "allow"

    made = person("challenged@python.test")
    needed = refused(RadarChallengeError, users.authenticate_with_password, email=made.email, password=PASSWORD, user_agent="curl/8.5.0")
    challenge = needed.response_json["radar_challenge_id"]
    signed = users.authenticate_with_radar_email_challenge(
        code=code_sent_to(made.email, "unusual"), radar_challenge_id=challenge, pending_authentication_token=needed.pending_authentication_token
    )
    assert signed.user.id == made.id

    organization = organizations.create_organization(name="Python widgets")
    memberships.create_organization_membership(user_id=made.id, organization_id=organization.id, role=RoleSingle(role_slug="admin"))
    token = widgets.create_token(organization_id=organization.id, user_id=made.id, scopes=["widgets:users-table:manage"]).token
    claims = claims_of(token, audience="urn:gatehouse:widgets")
    assert (claims["sub"], claims["org_id"], claims["scopes"]) == (made.id, organization.id, ["widgets:users-table:manage"])


@part
def addresses_and_template():
    for_good = users.create_redirect_uri(uri="https://python.test/first")
    uri = users.create_redirect_uri(uri="https://python.test/callback")
    assert [found.id for found in users.list_redirect_uris(limit=2)] == [uri.id, for_good.id]
    users.delete_redirect_uris(uri.id)
    assert uri.id not in [found.id for found in users.list_redirect_uris()]
    origin = users.create_cors_origin(origin="https://python.test")
    assert [found.id for found in users.list_cors_origins(limit=1)] == [origin.id]
    content = '{"language": "{{ user.metadata.language }}"}'
    assert users.update_jwt_template(content=content).content == content
    assert users.list_jwt_template().content == content
    made = person("template@python.test", metadata={"language": "en"})
    assert claims_of(users.authenticate_with_password(email=made.email, password=PASSWORD).access_token)["language"] == "en"


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


def posted(path: str, body: dict, bearer: str = key):
    """What no SDK has a call for."""
    headers = {"Authorization": f"Bearer {bearer}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(f"{url}{path}", json.dumps(body).encode(), headers)) as answer:
        return json.load(answer)


@part
def directories_with_people_and_groups():
    organization = organizations.create_organization(name="Python directories")
    made = posted("/admin/directories", {"organization_id": organization.id, "type": "okta scim v2.0", "name": "Python Okta"})["id"]
    bearer = posted(f"/admin/directories/{made}/tokens", {})["token"]
    full = {"userName": "ada@python.test", "externalId": "e-1", "title": "Dr", "emails": [{"value": "ada@python.test", "type": "work"}], "name": {"givenName": "Ada"}}
    ada = posted(f"/scim/v2/{made}/Users", full, bearer)["id"]
    # Somebody of whom nothing is known.
    nobody = posted(f"/scim/v2/{made}/Users", {"userName": "nobody"}, bearer)["id"]
    group = posted(f"/scim/v2/{made}/Groups", {"displayName": "Python admins", "members": [{"value": ada}]}, bearer)["id"]
    shown = directories.get_directory(made)
    assert (shown.id, shown.state.value, shown.metadata.users.active, shown.metadata.groups) == (made, "linked", 2, 1)
    assert [found.id for found in directories.list_directories(organization_id=organization.id, search="python")] == [made]
    user = directories.get_user(ada)
    assert (user.idp_id, user.email, user.first_name, user.custom_attributes["job_title"]) == ("e-1", "ada@python.test", "Ada", "Dr")
    assert [found.id for found in user.groups] == [group]
    other = directories.get_user(nobody)
    assert (other.idp_id, other.email, other.custom_attributes, other.groups, other.raw_attributes["userName"]) == (nobody, None, {}, [], "nobody")
    assert {found.id for found in directories.list_users(directory=made)} == {ada, nobody}
    assert [found.id for found in directories.list_users(group=group)] == [ada]
    assert directories.get_group(group).idp_id == group
    assert [found.name for found in directories.list_groups(directory=made)] == ["Python admins"]
    assert [found.id for found in directories.list_groups(user=ada)] == [group]
    told = ["dsync.user.created", "dsync.group.created", "dsync.group.user_added", "dsync.activated"]
    assert {event.event for event in eventually(lambda: (lambda seen: len(seen) == 5 and seen)(list(events.list_events(events=told, organization_id=organization.id))))} == set(told)
    directories.delete_directory(made)
    refused(NotFoundError, directories.get_user, ada)


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
def audit_trail():
    organization = organizations.create_organization(name="Python trail")
    event = AuditLogEvent(
        action="document.shared",
        occurred_at=datetime.now(timezone.utc),
        actor=AuditLogEventActor(id="user_1", type="user", name="Ada", metadata={"role": "owner"}),
        targets=[AuditLogEventTarget(id="document_1", type="document")],
        context=AuditLogEventContext(location="192.0.2.1", user_agent="python"),
        metadata={"pages": 12, "draft": False},
    )
    for key in (None, None, "python-key", "python-key"):
        assert audit_logs.create_event(organization_id=organization.id, event=event, idempotency_key=key).success
    event.action = ""
    refused(UnprocessableEntityError, audit_logs.create_event, organization_id=organization.id, event=event)
    event.action = "document.shared"
    refused(NotFoundError, audit_logs.create_event, organization_id="org_01J00000000000000000000000", event=event)
    until = datetime.now(timezone.utc)
    span = {"range_start": until - timedelta(days=1), "range_end": until}
    made = audit_logs.create_export(organization_id=organization.id, **span, actor_names=["Ada"], targets=["document"])
    found = eventually(lambda: next((found for found in [audit_logs.get_export(made.id)] if found.state == "ready"), None))
    assert found.id == made.id and found.url is not None
    refused(BadRequestError, audit_logs.create_export, organization_id=organization.id, range_start=until, range_end=until - timedelta(days=1))
    refused(NotFoundError, audit_logs.get_export, "audit_log_export_01J00000000000000000000000")


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
