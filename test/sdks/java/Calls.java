import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpServer;
import com.workos.WorkOS;
import com.workos.apikeys.ApiKeys;
import com.workos.auditlogs.AuditLogs;
import com.workos.authorization.Authorization;
import com.workos.authorization.Parent;
import com.workos.authorization.ParentResource;
import com.workos.authorization.ResourceTarget;
import com.workos.common.exceptions.BadRequestException;
import com.workos.common.exceptions.NotFoundException;
import com.workos.common.exceptions.UnprocessableEntityException;
import com.workos.common.exceptions.WorkOSException;
import com.workos.common.exceptions.WorkOSGenericException;
import com.workos.common.http.Page;
import com.workos.common.http.PatchField;
import com.workos.common.http.RetryConfig;
import com.workos.events.Events;
import com.workos.groups.Groups;
import com.workos.models.AssignRole;
import com.workos.models.AuditLogEvent;
import com.workos.models.AuditLogEventActor;
import com.workos.models.AuditLogEventContext;
import com.workos.models.AuditLogExport;
import com.workos.models.AuthenticateResponse;
import com.workos.models.OrganizationDomainData;
import com.workos.multifactorauth.MultiFactorAuth;
import com.workos.organizationdomains.OrganizationDomains;
import com.workos.organizationmembership.CreateUserRole;
import com.workos.organizationmembership.OrganizationMembershipService;
import com.workos.organizations.Organizations;
import com.workos.radar.Radar;
import com.workos.session.AuthenticateSessionFailureReason;
import com.workos.session.AuthenticateSessionResult;
import com.workos.session.RefreshSessionResult;
import com.workos.session.Session;
import com.workos.types.AuditLogExportState;
import com.workos.types.AuthenticationFactorsCreateRequestType;
import com.workos.types.AuthorizationAssignment;
import com.workos.types.CreateUserInviteOptionsLocale;
import com.workos.types.CreateUserPasswordHashType;
import com.workos.types.CreateWebhookEndpointEvents;
import com.workos.types.OrganizationDomainDataState;
import com.workos.types.OrganizationMembershipStatus;
import com.workos.types.PaginationOrder;
import com.workos.types.RadarStandaloneAssessRequestAction;
import com.workos.types.RadarStandaloneAssessRequestAuthMethod;
import com.workos.types.WebhookEndpointStatus;
import com.workos.types.WidgetSessionTokenScopes;
import com.workos.usermanagement.AuthKitAuthUrlsKt;
import com.workos.usermanagement.AuthKitLogoutUrlOptions;
import com.workos.usermanagement.CreateUserPassword;
import com.workos.usermanagement.UserManagement;
import com.workos.webhooks.Webhook;
import com.workos.webhooks.Webhooks;
import com.workos.widgets.Widgets;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Calls every method of the Java SDK whose area Gatehouse serves, and holds each answer to what a customer would expect.
 * Arguments: address, key, this file, client id. Prints one JSON object: `called` (how many methods), `failed` (part and reason), `forgotten` (methods that this file does not call).
 */
public final class Calls {
  /** Operations that Gatehouse does not have. */
  private static final Map<String, Set<String>> ABSENT = Map.of(
      "trail", Set.of("createSchema", "getAuditLogsRetention", "listActionSchemas", "listActions", "updateAuditLogsRetention"),
      "organizations", Set.of("getAuditLogConfiguration", "listAuthorizedApplications", "createItContact", "deleteItContact", "inviteItContact", "listItContacts", "revokeItContact"),
      "users", Set.of("confirmEmailChange", "createDevice", "createRadarChallenge", "deleteAuthorizedApplication", "getRadarChallenge", "listAuthorizedApplications", "sendEmailChange"));
  private static final String PASSWORD = "ride-a-giraffe-7";
  /** Of a cookie. */
  private static final String SEAL = "a-password-of-a-cookie-with-32-characters";
  private static final String BYE = "https://sdk.test/bye";

  private static final PaginationOrder ASCENDING = PaginationOrder.Asc;

  private final Organizations organizations;
  private final OrganizationDomains domains;
  private final UserManagement users;
  private final OrganizationMembershipService memberships;
  private final Groups groups;
  private final ApiKeys keys;
  private final Authorization authorization;
  private final Events events;
  private final AuditLogs trail;
  private final Webhooks webhooks;
  private final MultiFactorAuth factors;
  private final Radar radar;
  private final Widgets widgets;
  private final Session sessions;
  private final String address;
  private final String clientId;
  private final List<Map<String, String>> failed = new ArrayList<>();

  private Calls(WorkOS client, String address, String clientId) {
    this.address = address;
    this.clientId = clientId;
    organizations = client.getOrganizations();
    domains = client.getOrganizationDomains();
    users = client.getUserManagement();
    memberships = client.getOrganizationMembership();
    groups = client.getGroups();
    keys = client.getApiKeys();
    authorization = client.getAuthorization();
    events = client.getEvents();
    trail = client.getAuditLogs();
    webhooks = client.getWebhooks();
    factors = client.getMultiFactorAuth();
    radar = client.getRadar();
    widgets = client.getWidgets();
    sessions = new Session(client);
  }

  public static void main(String[] args) throws Exception {
    // Without repeats: a call that fails once has failed.
    Calls calls = new Calls(new WorkOS.Builder().apiKey(args[1]).clientId(args[3]).apiBaseUrl(args[0]).retryConfig(RetryConfig.DISABLED).build(), args[0], args[3]);
    calls.part("organizations and domains", calls::organizationsAndDomains);
    calls.part("users and memberships", calls::usersAndMemberships);
    calls.part("groups", calls::groupsOfAnOrganization);
    calls.part("API keys", calls::keysOfOrganizationsAndUsers);
    calls.part("codes and passwords", calls::codesAndPasswords);
    calls.part("sessions", calls::organizationsAndSessions);
    calls.part("sealed sessions", calls::sealedSessions);
    calls.part("second factors", calls::secondFactors);
    calls.part("second factors by text", calls::secondFactorsByText);
    calls.part("invitations", calls::invitationsToOrganizations);
    calls.part("risk and widgets", calls::riskAndWidgets);
    calls.part("addresses and template", calls::addressesAndTemplate);
    calls.part("permissions and roles", calls::permissionsAndRoles);
    calls.part("resources and access", calls::resourcesAndAccess);
    calls.part("audit trail", calls::auditTrail);
    calls.part("events and webhooks", calls::eventsAndWebhooks);

    Map<String, Class<?>> areas = Map.ofEntries(
        Map.entry("organizations", Organizations.class), Map.entry("domains", OrganizationDomains.class), Map.entry("users", UserManagement.class),
        Map.entry("memberships", OrganizationMembershipService.class), Map.entry("groups", Groups.class), Map.entry("keys", ApiKeys.class),
        Map.entry("authorization", Authorization.class), Map.entry("events", Events.class), Map.entry("trail", AuditLogs.class), Map.entry("webhooks", Webhooks.class),
        Map.entry("factors", MultiFactorAuth.class), Map.entry("radar", Radar.class), Map.entry("widgets", Widgets.class), Map.entry("sessions", Session.class));
    String source = Files.readString(Path.of(args[2]));
    Set<String> called = new TreeSet<>();
    Set<String> forgotten = new TreeSet<>();
    areas.forEach((area, type) -> {
      for (String method : methodsOf(area, type)) (source.contains(area + "." + method + "(") ? called : forgotten).add(area + "." + method);
    });
    System.out.println(new ObjectMapper().writeValueAsString(Map.of("called", called, "failed", calls.failed, "forgotten", forgotten)));
    System.exit(0);
  }

  /** Without what Kotlin adds to each: a form that suspends, and forms with defaults. */
  private static Set<String> methodsOf(String area, Class<?> type) {
    Set<String> names = new TreeSet<>();
    for (Method method : type.getDeclaredMethods()) {
      String name = method.getName();
      if (Modifier.isPublic(method.getModifiers()) && !name.contains("$") && !name.endsWith("Suspend")) names.add(name);
    }
    names.removeAll(ABSENT.getOrDefault(area, Set.of()));
    return names;
  }

  private void organizationsAndDomains() {
    var made = organizations.create("Java Acme", null, null, List.of(new OrganizationDomainData("java-sdk.test", OrganizationDomainDataState.Verified)), Map.of("tier", "gold"), "java-1");
    is("Java Acme", made.getName());
    is("java-1", made.getExternalId());
    is("java-sdk.test", made.getDomains().get(0).getDomain());
    is(made, organizations.get(made.getId()));
    is(made, organizations.getByExternalId("java-1"));
    var changed = organizations.update(made.getId(), "Java Acme Ltd", null, null, null, "cus_java", Map.of("seats", "3"), null);
    is("Java Acme Ltd", changed.getName());
    is("cus_java", changed.getStripeCustomerId());
    is(Map.of("tier", "gold", "seats", "3"), changed.getMetadata());
    is(List.of(made.getId()), ids(organizations.list(null, null, null, null, null, "java acme"), found -> found.getId()));
    is(List.of(made.getId()), ids(organizations.list(null, null, null, null, List.of("java-sdk.test", "nobodys.test"), null), found -> found.getId()));
    for (int number = 0; number < 3; number++) organizations.create("Paged " + number);
    int seen = 0;
    for (var each : organizations.list(null, null, 2).autoPagingIterable()) seen++;
    is(true, seen >= 4);

    var domain = domains.create("java-two.test", made.getId());
    is(domain, domains.get(domain.getId()));
    is("pending", domains.verify(domain.getId()).getState().getValue());
    domains.delete(domain.getId());
    refused(NotFoundException.class, () -> domains.get(domain.getId()));
    organizations.delete(made.getId());
    refused(NotFoundException.class, () -> organizations.get(made.getId()));
    refused(UnprocessableEntityException.class, () -> organizations.create(""));
  }

  private void usersAndMemberships() {
    var made = users.create(new CreateUserPassword.Plaintext("ride-a-giraffe-7"), "ada@java.test", "Ada", null, null, null, Map.of("language", "en"), "java-user", null, null, null);
    is("ada@java.test", made.getEmail());
    is("Ada", made.getFirstName());
    is(false, made.getEmailVerified());
    var imported = new CreateUserPassword.Hashed("$2b$04$C8t7t9bmSJCXdzcL1PtVGuwbpeGHXpL7fQB0sIZ6VVpvMUHzSg6/a", CreateUserPasswordHashType.Bcrypt, null);
    users.create(imported, "imported@java.test");
    is(made.getId(), users.get(made.getId()).getId());
    is(made.getId(), users.getByExternalId("java-user").getId());
    is(List.of(made.getId()), ids(users.list(null, null, null, null, null, null, "ada@java.test"), found -> found.getId()));
    var changed = users.update(made.getId(), null, null, "Augusta");
    is("Augusta", changed.getFirstName());

    var organization = organizations.create("Java members");
    var membership = memberships.create(new CreateUserRole.Single("admin"), made.getId(), organization.getId());
    is("admin", membership.getRole().getSlug());
    is(membership.getId(), memberships.get(membership.getId()).getId());
    var statuses = List.of(OrganizationMembershipStatus.Active, OrganizationMembershipStatus.Inactive);
    is(List.of(membership.getId()), ids(memberships.list(null, null, null, null, organization.getId(), statuses, null), found -> found.getId()));
    is(List.of(made.getId()), ids(users.list(null, null, null, null, null, organization.getId(), null), found -> found.getId()));
    is("member", memberships.update(membership.getId(), new CreateUserRole.Multiple(List.of("member"))).getRole().getSlug());
    is("inactive", memberships.deactivate(membership.getId()).getStatus().getValue());
    is("active", memberships.reactivate(membership.getId()).getStatus().getValue());
    is(List.of(), ids(memberships.listGroups(membership.getId()), found -> found.getId()));
    memberships.delete(membership.getId());
    refused(NotFoundException.class, () -> memberships.get(membership.getId()));
    users.delete(made.getId());
    refused(NotFoundException.class, () -> users.get(made.getId()));
  }

  private void groupsOfAnOrganization() {
    var organization = organizations.create("Java groups");
    var member = memberships.create(null, users.create(null, "one@groups.java.test").getId(), organization.getId());
    var group = groups.createOrganizationGroup(organization.getId(), "Engineering", "Builds");
    is(group, groups.getOrganizationGroup(organization.getId(), group.getId()));
    is(List.of(group.getId()), ids(groups.listOrganizationGroups(organization.getId(), null, null, null, null, "engin"), found -> found.getId()));
    is(null, groups.updateOrganizationGroup(organization.getId(), group.getId(), PatchField.absent(), PatchField.ofNull()).getDescription());
    is(group.getId(), groups.createOrganizationMembership(organization.getId(), group.getId(), member.getId()).getId());
    var listed = groups.listOrganizationMemberships(organization.getId(), group.getId());
    is(List.of(member.getId()), ids(listed, found -> found.getId()));
    is("one@groups.java.test", listed.data.get(0).getUser().getEmail());
    is(List.of(group.getId()), ids(memberships.listGroups(member.getId()), found -> found.getId()));
    groups.deleteOrganizationMembership(organization.getId(), group.getId(), member.getId());
    groups.deleteOrganizationGroup(organization.getId(), group.getId());
    refused(NotFoundException.class, () -> groups.getOrganizationGroup(organization.getId(), group.getId()));
  }

  private void keysOfOrganizationsAndUsers() {
    var organization = organizations.create("Java keys");
    var made = keys.createOrganizationApiKey(organization.getId(), "Build server", List.of("widgets:sso:manage"));
    is(true, made.getValue().startsWith("sk_"));
    is(List.of("widgets:sso:manage"), made.getPermissions());
    var valid = keys.createValidation(made.getValue()).getApiKey();
    is(made.getId(), valid.getId());
    is(organization.getId(), valid.getOwner().getId());
    is(null, keys.createValidation("sk_unknown").getApiKey());
    is(List.of(made.getId()), ids(keys.listOrganizationApiKeys(organization.getId()), found -> found.getId()));

    var tomorrow = OffsetDateTime.now(ZoneOffset.UTC).plusDays(1).truncatedTo(ChronoUnit.SECONDS);
    is(tomorrow.toInstant(), keys.createExpire(made.getId(), tomorrow).getExpiresAt().toInstant());
    keys.createExpire(made.getId(), OffsetDateTime.now(ZoneOffset.UTC).minusDays(1));
    is(null, keys.createValidation(made.getValue()).getApiKey());

    var user = users.create(null, "keys@java.test");
    memberships.create(null, user.getId(), organization.getId());
    var own = users.createApiKey(user.getId(), "Laptop", organization.getId());
    is(organization.getId(), own.getOwner().getOrganizationId());
    is(List.of(own.getId()), ids(users.listApiKeys(user.getId()), found -> found.getId()));
    is(organization.getId(), keys.createValidation(own.getValue()).getApiKey().getOwner().getOrganizationId());
    keys.delete(own.getId());
    is(null, keys.createValidation(own.getValue()).getApiKey());
    refused(NotFoundException.class, () -> keys.delete(own.getId()));
  }

  private void codesAndPasswords() throws Exception {
    var sent = users.createMagicAuth("magic@java.test", null, "192.0.2.8", "Firefox");
    is(sent.getCode(), users.getMagicAuth(sent.getId()).getCode());
    var signed = users.authenticateWithMagicAuth(sent.getCode(), "magic@java.test", null, "192.0.2.8", null, "Firefox");
    is(sent.getUserId(), signed.getUser().getId());
    is("MagicAuth", signed.getAuthenticationMethod().getValue());
    is(sent.getUserId(), claimsOf(signed.getAccessToken()).get("sub").asText());
    is(List.of(), users.getIdentities(sent.getUserId()));
    refused(BadRequestException.class, () -> users.authenticateWithMagicAuth(sent.getCode().equals("000000") ? "000001" : "000000", "magic@java.test"));

    var made = users.create(new CreateUserPassword.Plaintext(PASSWORD), "unproven@java.test");
    var needed = neededBy("email_verification_required", () -> users.authenticateWithPassword("unproven@java.test", PASSWORD));
    var verification = users.getEmailVerification(needed.get("email_verification_id").asText());
    is("unproven@java.test", verification.getEmail());
    is(made.getId(), users.authenticateWithEmailVerification(verification.getCode(), pendingOf(needed)).getUser().getId());
    is("Password", users.authenticateWithPassword("unproven@java.test", PASSWORD).getAuthenticationMethod().getValue());
    refused(BadRequestException.class, () -> users.authenticateWithPassword("unproven@java.test", "ride-an-ostrich-8"));

    var other = users.create("confirmed@java.test");
    is(other.getId(), users.sendVerificationEmail(other.getId()).getUser().getId());
    is(true, users.verifyEmail(other.getId(), codeSentTo("confirmed@java.test", "")).getUser().getEmailVerified());

    var reset = users.resetPassword("unproven@java.test");
    is(reset.getPasswordResetToken(), users.getPasswordReset(reset.getId()).getPasswordResetToken());
    is(made.getId(), users.confirmPasswordReset(reset.getPasswordResetToken(), "ride-an-ostrich-8").getUser().getId());
    is(made.getId(), users.authenticateWithPassword("unproven@java.test", "ride-an-ostrich-8").getUser().getId());

    // Nothing issues these yet, so that a code is always one that nobody knows.
    refused(BadRequestException.class, () -> users.authenticateWithCode("nobodys"));
    refused(BadRequestException.class, () -> users.authenticateWithDeviceCode("nobodys"));
    refused(BadRequestException.class, () -> users.authenticateWithRadarSmsChallenge("123456", "nobodys", "nobodys"));
  }

  private void organizationsAndSessions() throws Exception {
    String userId = person("selects@java.test");
    var first = organizations.create("Java selects 1");
    var second = organizations.create("Java selects 2");
    memberships.create(new CreateUserRole.Single("member"), userId, first.getId());
    memberships.create(new CreateUserRole.Single("admin"), userId, second.getId());
    var needed = neededBy("organization_selection_required", () -> users.authenticateWithPassword("selects@java.test", PASSWORD));
    is(2, needed.get("organizations").size());
    var signed = users.authenticateWithOrganizationSelection(pendingOf(needed), first.getId());
    is(first.getId(), signed.getOrganizationId());
    is("member", claimsOf(signed.getAccessToken()).get("role").asText());
    var switched = users.authenticateWithRefreshToken(signed.getRefreshToken(), second.getId());
    is("admin", claimsOf(switched.getAccessToken()).get("role").asText());
    String session = claimsOf(switched.getAccessToken()).get("sid").asText();
    is(session, claimsOf(signed.getAccessToken()).get("sid").asText());
    is(List.of(session), ids(users.listSessions(userId), found -> found.getId()));
    users.revokeSession(session);
    refused(BadRequestException.class, () -> users.authenticateWithRefreshToken(switched.getRefreshToken()));

    var again = neededBy("organization_selection_required", () -> users.authenticateWithPassword("selects@java.test", PASSWORD));
    var last = users.authenticateWithOrganizationSelection(pendingOf(again), second.getId());
    var options = new AuthKitLogoutUrlOptions(claimsOf(last.getAccessToken()).get("sid").asText(), BYE);
    is("302 " + BYE, redirectionOf(AuthKitAuthUrlsKt.getLogoutUrl(users, options)));
    refused(BadRequestException.class, () -> users.authenticateWithRefreshToken(last.getRefreshToken()));
    for (var key : users.getJwks(clientId).getKeys()) {
      is("RS256", key.getAlg());
      is(1, key.getX5C().size());
    }
  }

  private void sealedSessions() throws Exception {
    String userId = person("sealed@java.test");
    var organization = organizations.create("Java seals");
    memberships.create(new CreateUserRole.Single("admin"), userId, organization.getId());
    AuthenticateResponse signed = users.authenticateWithPassword("sealed@java.test", PASSWORD);
    String sealed = sessions.sealAuthResponse(signed, SEAL);
    is(signed.getRefreshToken(), sessions.unsealData(sealed, SEAL).get("refreshToken"));
    var seen = (AuthenticateSessionResult.Success) sessions.authenticateWithSessionCookie(sealed, SEAL);
    is(claimsOf(signed.getAccessToken()).get("sid").asText(), seen.getSessionId());
    is(organization.getId(), seen.getOrganizationId());
    is("admin", seen.getRole());
    is(List.of("admin"), seen.getRoles());
    is(userId, seen.getUser().getId());
    var refreshed = (RefreshSessionResult.Success) sessions.refreshSession(sealed, SEAL, organization.getId());
    is(seen.getSessionId(), refreshed.getSessionId());
    var cookie = sessions.loadSealedSession(refreshed.getSealedSession(), SEAL);
    is(seen.getSessionId(), ((RefreshSessionResult.Success) cookie.refresh()).getSessionId());
    is(seen.getSessionId(), ((AuthenticateSessionResult.Success) cookie.authenticate()).getSessionId());

    var forged = new HashMap<>(sessions.unsealData(sealed, SEAL));
    forged.put("accessToken", signed.getAccessToken().substring(0, signed.getAccessToken().length() - 8) + "AAAAAAAA");
    var wrong = (AuthenticateSessionResult.Failure) sessions.authenticateWithSessionCookie(sessions.sealData(forged, SEAL), SEAL);
    is(AuthenticateSessionFailureReason.INVALID_JWT, wrong.getReason());
    is("302 " + BYE, redirectionOf(cookie.getLogoutUrl(BYE)));
    // This version knows the end of a session by a `code`, which no refusal of OAuth has; it hands on the refusal instead.
    refused(BadRequestException.class, () -> cookie.refresh());
  }

  private void auditTrail() throws Exception {
    var organization = organizations.create("Java trail");
    var actor = new AuditLogEventActor("user_1", "user", "Ada", Map.of("role", "owner"));
    var target = new AuditLogEventActor("document_1", "document", null, null);
    var context = new AuditLogEventContext("192.0.2.1", "java");
    var event = new AuditLogEvent("document.shared", OffsetDateTime.now(), actor, List.of(target), context, Map.of("pages", 12, "draft", false), null);
    is(true, trail.createEvent(organization.getId(), event).getSuccess());
    is(true, trail.createEvent(organization.getId(), event).getSuccess());
    var blank = new AuditLogEvent("", OffsetDateTime.now(), actor, List.of(target), context, null, null);
    refused(UnprocessableEntityException.class, () -> trail.createEvent(organization.getId(), blank));
    refused(NotFoundException.class, () -> trail.createEvent("org_01J00000000000000000000000", event));
    var until = OffsetDateTime.now();
    var made = trail.createExport(organization.getId(), until.minusDays(1), until);
    AuditLogExport found = trail.getExport(made.getId());
    for (int tries = 0; found.getState() == AuditLogExportState.Pending && tries < 200; tries++) {
      Thread.sleep(50);
      found = trail.getExport(made.getId());
    }
    is(AuditLogExportState.Ready, found.getState());
    is(true, found.getUrl() != null);
    refused(BadRequestException.class, () -> trail.createExport(organization.getId(), until, until.minusDays(1)));
    refused(NotFoundException.class, () -> trail.getExport("audit_log_export_01J00000000000000000000000"));
  }

  private void secondFactors() throws Exception {
    String userId = person("factors@java.test");
    var enrolled = factors.createUserAuthFactor(userId, "totp", "Java", "factors@java.test");
    String factor = enrolled.getAuthenticationFactor().getId();
    String secret = enrolled.getAuthenticationFactor().getTotp().getSecret();
    is(true, factors.verifyChallenge(enrolled.getAuthenticationChallenge().getId(), codeOf(secret, 0)).getValid());
    var needed = neededBy("mfa_challenge", () -> users.authenticateWithPassword("factors@java.test", PASSWORD));
    is(factor, needed.get("authentication_factors").get(0).get("id").asText());
    // A code works once, and the next one is taken up to half a minute early.
    String challenge = factors.challengeFactor(factor).getId();
    is(userId, users.authenticateWithTotp(codeOf(secret, 1), pendingOf(needed), challenge).getUser().getId());
    is(List.of(factor), ids(factors.listUserAuthFactors(userId), found -> found.getId()));
    is(factor, factors.getFactor(factor).getId());
    var own = factors.enrollFactor(AuthenticationFactorsCreateRequestType.GenericOtp);
    var asked = factors.challengeFactor(own.getId());
    is(true, factors.verifyChallenge(asked.getId(), asked.getCode()).getValid());
    factors.deleteFactor(factor);
    refused(NotFoundException.class, () -> factors.getFactor(factor));
    is(userId, users.authenticateWithPassword("factors@java.test", PASSWORD).getUser().getId());
  }

  private void secondFactorsByText() throws Exception {
    String userId = person("texts@java.test");
    String phone = "+4915114000001";
    var enrolled = factors.enrollFactor(AuthenticationFactorsCreateRequestType.Sms, phone, null, null, userId);
    String factor = enrolled.getId();
    is(phone, enrolled.getSms().getPhoneNumber());
    String enrolment = factors.challengeFactor(factor, "To enrol: {{code}}").getId();
    is(true, factors.verifyChallenge(enrolment, codeSentTo(phone, "To enrol: ")).getValid());
    var needed = neededBy("mfa_challenge", () -> users.authenticateWithPassword("texts@java.test", PASSWORD));
    is(factor, needed.get("authentication_factors").get(0).get("id").asText());
    String challenge = factors.challengeFactor(factor, "To sign in: {{code}}").getId();
    is(userId, users.authenticateWithTotp(codeSentTo(phone, "To sign in: "), pendingOf(needed), challenge).getUser().getId());
    refused(UnprocessableEntityException.class, () -> factors.enrollFactor(AuthenticationFactorsCreateRequestType.Sms, "+4915114000002", null, null, userId));
  }

  private void invitationsToOrganizations() {
    var organization = organizations.create("Java invites");
    String inviter = person("inviter@java.test");
    var made = users.sendInvitation("invited@java.test", organization.getId(), "admin", 3L, inviter, CreateUserInviteOptionsLocale.De);
    is(inviter, made.getInviterUserId());
    is(made.getToken(), users.getInvitation(made.getId()).getToken());
    is(made.getId(), users.findInvitationByToken(made.getToken()).getId());
    var again = users.resendInvitation(made.getId(), CreateUserInviteOptionsLocale.En);
    is(List.of(again.getToken()), ids(users.listInvitations(null, null, null, null, organization.getId(), null), found -> found.getToken()));
    var sent = users.createMagicAuth("invited@java.test", again.getToken());
    var signed = users.authenticateWithMagicAuth(sent.getCode(), "invited@java.test", again.getToken());
    is(organization.getId(), signed.getOrganizationId());
    var other = users.sendInvitation("inviter@java.test", organization.getId());
    is(inviter, users.acceptInvitation(other.getId()).getAcceptedUserId());
    is("revoked", users.revokeInvitation(users.sendInvitation("nobody@java.test").getId()).getState().getValue());
  }

  private void riskAndWidgets() throws Exception {
    is("allow", assessed().getVerdict().getValue());
    radar.updateAttempt(assessed().getAttemptId(), "success", "success");
    radar.addListEntry("email", "block", "risk@java.test");
    is("restriction", assessed().getControl().getValue());
    is("email", assessed().getBlocklistType().getValue());
    is(true, radar.addListEntry("email", "block", "risk@java.test").getMessage() != null);
    radar.removeListEntry("email", "block", "risk@java.test");
    is("allow", assessed().getVerdict().getValue());

    String userId = person("challenged@java.test");
    var needed = neededBy("radar_challenge", () -> users.authenticateWithPassword("challenged@java.test", PASSWORD, null, null, null, "curl/8.5.0"));
    String code = codeSentTo("challenged@java.test", "unusual");
    var signed = users.authenticateWithRadarEmailChallenge(code, needed.get("radar_challenge_id").asText(), pendingOf(needed));
    is(userId, signed.getUser().getId());

    var organization = organizations.create("Java widgets");
    memberships.create(new CreateUserRole.Single("admin"), userId, organization.getId());
    var token = widgets.createToken(organization.getId(), userId, List.of(WidgetSessionTokenScopes.WidgetsUsersTableManage)).getToken();
    is("widgets:users-table:manage", claimsOf(token).get("scopes").get(0).asText());
  }

  private com.workos.models.RadarStandaloneResponse assessed() {
    return radar.createAttempt("198.51.100.8", "Mozilla/5.0", "risk@java.test", RadarStandaloneAssessRequestAuthMethod.Password, RadarStandaloneAssessRequestAction.SignIn);
  }

  private void addressesAndTemplate() throws Exception {
    users.createRedirectUri("https://java.test/first");
    String uri = users.createRedirectUri("https://java.test/callback").getId();
    is(List.of(uri), ids(users.listRedirectUris(null, null, 1), found -> found.getId()).subList(0, 1));
    users.deleteRedirectUris(uri);
    is(false, ids(users.listRedirectUris(), found -> found.getId()).contains(uri));
    String origin = users.createCorsOrigin("https://java.test").getId();
    is(true, ids(users.listCorsOrigins(), found -> found.getId()).contains(origin));
    String content = "{\"language\": \"{{ user.metadata.language }}\"}";
    is(content, users.updateJWTTemplate(content).getContent());
    is(content, users.listJWTTemplate().getContent());
    users.create(new CreateUserPassword.Plaintext(PASSWORD), "template@java.test", null, null, null, true, Map.of("language", "en"));
    is("en", claimsOf(users.authenticateWithPassword("template@java.test", PASSWORD).getAccessToken()).get("language").asText());
  }

  /** Whose address is proven. */
  private String person(String email) {
    return users.create(new CreateUserPassword.Plaintext(PASSWORD), email, null, null, null, true).getId();
  }

  /** What a step of a sign-in answers that asks for another one. */
  private static JsonNode neededBy(String code, Runnable step) throws Exception {
    try {
      step.run();
    } catch (WorkOSException error) {
      is(code, error.code);
      return new ObjectMapper().readTree(error.rawBody);
    }
    throw new AssertionError("nothing more was asked for");
  }

  private static String pendingOf(JsonNode needed) {
    return needed.get("pending_authentication_token").asText();
  }

  /** What a token says; the session helper verifies it. */
  private static JsonNode claimsOf(String token) throws Exception {
    return new ObjectMapper().readTree(Base64.getUrlDecoder().decode(token.split("\\.")[1]));
  }

  /** What an authenticator app shows. */
  private static String codeOf(String secret, long drift) throws Exception {
    ByteBuffer key = ByteBuffer.allocate(secret.length() * 5 / 8);
    int bits = 0;
    int held = 0;
    for (char digit : secret.toCharArray()) {
      held = held << 5 | "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(digit);
      bits += 5;
      if (bits >= 8) key.put((byte) (held >> (bits -= 8)));
    }
    Mac mac = Mac.getInstance("HmacSHA1");
    mac.init(new SecretKeySpec(key.array(), "HmacSHA1"));
    byte[] digest = mac.doFinal(ByteBuffer.allocate(8).putLong(System.currentTimeMillis() / 30_000 + drift).array());
    int number = ByteBuffer.wrap(digest, digest[19] & 15, 4).getInt() & 0x7fffffff;
    return String.format("%06d", number % 1_000_000);
  }

  /** The code in the message to an address that has these words. */
  private String codeSentTo(String email, String words) throws Exception {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
    while (System.nanoTime() < end) {
      for (JsonNode message : new ObjectMapper().readTree(got(address + "/dev/mailbox/messages").body()).get("data")) {
        String text = message.get("text").asText();
        Matcher code = Pattern.compile("\\b\\d{6}\\b").matcher(text);
        if (message.get("to").asText().equals(email) && text.contains(words) && code.find()) return code.group();
      }
      Thread.sleep(100);
    }
    throw new AssertionError("no message came in time");
  }

  /** How a browser is sent on that goes there. */
  private static String redirectionOf(String from) throws Exception {
    var answer = got(from);
    return answer.statusCode() + " " + answer.headers().firstValue("Location").orElse("nowhere");
  }

  private static HttpResponse<String> got(String from) throws Exception {
    return HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(from)).build(), HttpResponse.BodyHandlers.ofString());
  }

  private void permissionsAndRoles() {
    var permission = authorization.createPermission("java:read", "Read", null, "sdk_project");
    is(permission, authorization.getPermission("java:read"));
    is(true, ids(authorization.listPermissions(null, null, 100), found -> found.getSlug()).contains("java:read"));
    is("Read all", authorization.updatePermission("java:read", PatchField.of("Read all")).getName());
    authorization.createPermission("java:bill", "Bill");
    authorization.createPermission("java:gone", "Gone");
    authorization.deletePermission("java:gone");
    refused(NotFoundException.class, () -> authorization.getPermission("java:gone"));
    refused(WorkOSGenericException.class, () -> authorization.createPermission("java:read", "Twin"));

    var role = authorization.createEnvironmentRole("java-editor", "Editor", null, "sdk_project");
    is(role, authorization.getEnvironmentRole("java-editor"));
    is(true, authorization.listEnvironmentRoles().getData().stream().anyMatch(found -> found.getSlug().equals("java-editor")));
    is("Writes", authorization.updateEnvironmentRole("java-editor", PatchField.absent(), PatchField.of("Writes")).getDescription());
    is(List.of(), authorization.setEnvironmentRolePermissions("java-editor", List.of()).getPermissions());
    is(List.of("java:read"), authorization.addEnvironmentRolePermission("java-editor", "java:read").getPermissions());

    var organization = organizations.create("Java roles");
    var own = authorization.createOrganizationRole(organization.getId(), "Ours", "org-java");
    is(own, authorization.getOrganizationRole(organization.getId(), "org-java"));
    is(true, authorization.listOrganizationRoles(organization.getId()).getData().stream().anyMatch(found -> found.getSlug().equals("org-java")));
    is("Still ours", authorization.updateOrganizationRole(organization.getId(), "org-java", PatchField.of("Still ours")).getName());
    is(List.of("java:bill"), authorization.setOrganizationRolePermissions(organization.getId(), "org-java", List.of("java:bill")).getPermissions());
    authorization.removeOrganizationRolePermission(organization.getId(), "org-java", "java:bill");
    // The same words again after they were taken back are another command, although this SDK derives its keys from the words.
    is(List.of("java:bill"), authorization.addOrganizationRolePermission(organization.getId(), "org-java", "java:bill").getPermissions());
    authorization.removeOrganizationRolePermission(organization.getId(), "org-java", "java:bill");
    is(List.of("java:bill"), authorization.addOrganizationRolePermission(organization.getId(), "org-java", "java:bill").getPermissions());
    authorization.deleteOrganizationRole(organization.getId(), "org-java");
    refused(NotFoundException.class, () -> authorization.getOrganizationRole(organization.getId(), "org-java"));
  }

  private void resourcesAndAccess() {
    var organization = organizations.create("Java resources");
    var user = users.create(null, "reader@java.test");
    String member = memberships.create(null, user.getId(), organization.getId()).getId();
    var workspace = authorization.createResource(null, "w-1", "Workspace", "sdk_workspace", organization.getId());
    var project = authorization.createResource(new ParentResource.ById(workspace.getId()), "p-1", "Project", "sdk_project", organization.getId());
    var other = authorization.createResourceByExternalId("w-1", "sdk_workspace", "p-2", "Other", "sdk_project", organization.getId(), null, null);
    is(project, authorization.getResource(project.getId()));
    is(project, authorization.getResourceByExternalId(organization.getId(), "sdk_project", "p-1"));
    is("One", authorization.updateResource(project.getId(), null, PatchField.absent(), PatchField.of("One")).getDescription());
    is("First", authorization.updateResourceByExternalId(organization.getId(), "sdk_project", "p-1", (ParentResource) null, PatchField.of("First"), PatchField.absent()).getName());
    List<String> both = List.of(project.getId(), other.getId());
    is(both, ids(authorization.listResources(null, null, null, ASCENDING, organization.getId(), "sdk_project", null, new Parent.ById(workspace.getId())), found -> found.getId()));
    is(both, ids(authorization.listResourcesByExternalId(null, null, null, ASCENDING, organization.getId(), "sdk_project", null, "sdk_workspace", "w-1", null), found -> found.getId()));

    ResourceTarget onProject = new ResourceTarget.ById(project.getId());
    is(false, authorization.check(member, onProject, "java:read").getAuthorized());
    for (int round = 0; round < 2; round++) {
      authorization.assignRole(member, onProject, "java-editor");
      is(true, authorization.check(member, onProject, "java:read").getAuthorized());
      authorization.removeRole(member, onProject, "java-editor");
      is(false, authorization.check(member, onProject, "java:read").getAuthorized());
    }
    var assigned = authorization.assignRoleByExternalId(member, "p-1", "sdk_project", "java-editor", null);
    is(true, authorization.checkByExternalId(member, "p-1", "sdk_project", "java:read", null).getAuthorized());
    is(List.of(assigned.getId()), ids(authorization.listRoleAssignments(member), found -> found.getId()));
    is(List.of(assigned.getId()), ids(authorization.listRoleAssignmentsForResource(project.getId()), found -> found.getId()));
    is(List.of(assigned.getId()), ids(authorization.listRoleAssignmentsForResourceByExternalId(organization.getId(), "sdk_project", "p-1"), found -> found.getId()));
    is(List.of("java:read"), ids(authorization.listEffectivePermissions(member, project.getId()), found -> found.getSlug()));
    is(List.of("java:read"), ids(authorization.listEffectivePermissionsByExternalId(member, "sdk_project", "p-1"), found -> found.getSlug()));
    is(List.of(project.getId()), ids(authorization.listResourcesForMembership(member, "java:read", null, null, null, null, new ParentResource.ById(workspace.getId())), found -> found.getId()));
    is(List.of(project.getId()), ids(authorization.listResourcesForMembershipByExternalId(member, "java:read", null, null, null, null, "sdk_workspace", "w-1", null), found -> found.getId()));
    var reaching = authorization.listMembershipsForResource(project.getId(), "java:read", null, null, null, null, AuthorizationAssignment.Direct);
    is(List.of(user.getId()), ids(reaching, found -> found.getUser().getId()));
    is(List.of(user.getId()), ids(authorization.listMembershipsForResourceByExternalId(organization.getId(), "sdk_project", "p-1", "java:read"), found -> found.getUser().getId()));
    authorization.removeRoleByExternalId(member, "p-1", "sdk_project", "java-editor", null);
    authorization.removeRoleAssignment(member, authorization.assignRole(member, onProject, "java-editor").getId());
    is(false, authorization.check(member, onProject, "java:read").getAuthorized());

    var group = groups.createOrganizationGroup(organization.getId(), "Readers");
    groups.createOrganizationMembership(organization.getId(), group.getId(), member);
    var granted = authorization.createGroupRoleAssignment(group.getId(), "java-editor", project.getId());
    is(true, authorization.check(member, onProject, "java:read").getAuthorized());
    is(granted.getId(), authorization.getGroupRoleAssignment(group.getId(), granted.getId()).getId());
    is(List.of(granted.getId()), ids(authorization.listGroupRoleAssignments(group.getId()), found -> found.getId()));
    is(List.of(granted.getId()), ids(authorization.listRoleAssignments(member), found -> found.getSource().getGroupRoleAssignmentId()));
    var replaced = authorization.updateGroupRoleAssignments(group.getId(), List.of(new AssignRole("java-editor", other.getId(), null, null)));
    is(1, replaced.getData().size());
    authorization.deleteGroupRoleAssignments(group.getId(), "java-editor", null, "p-2", "sdk_project");
    var last = authorization.createGroupRoleAssignment(group.getId(), "java-editor", project.getId());
    authorization.deleteGroupRoleAssignment(group.getId(), last.getId());
    is(false, authorization.check(member, onProject, "java:read").getAuthorized());

    refused(WorkOSGenericException.class, () -> authorization.deleteResource(workspace.getId()));
    authorization.deleteResourceByExternalId(organization.getId(), "sdk_project", "p-2");
    authorization.deleteResource(workspace.getId(), true);
    refused(NotFoundException.class, () -> authorization.getResource(project.getId()));
  }

  private record Delivery(String body, String signature) {}

  private void eventsAndWebhooks() throws Exception {
    BlockingQueue<Delivery> received = new LinkedBlockingQueue<>();
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
    server.createContext("/", exchange -> {
      String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
      received.add(new Delivery(body, exchange.getRequestHeaders().getFirst("WorkOS-Signature")));
      exchange.sendResponseHeaders(200, -1);
      exchange.close();
    });
    server.start();
    try {
      var endpoint = webhooks.createEndpoint("http://127.0.0.1:" + server.getAddress().getPort() + "/", List.of(CreateWebhookEndpointEvents.OrganizationCreated));
      is(true, ids(webhooks.listEndpoints(), found -> found.getId()).contains(endpoint.getId()));
      OffsetDateTime began = OffsetDateTime.now().minusSeconds(5);
      var made = organizations.create("Java événement");
      organizations.update(made.getId(), "Java event");
      // This version cannot read any event of a page: its classes of events are no subtypes of its own EventSchema. So it asks for a page without any.
      var none = events.list(List.of("organization.deleted"), null, null, 1, null, began, OffsetDateTime.now().plusMinutes(1), made.getId());
      is(List.of(), none.data);

      Delivery delivery = received.poll(30, TimeUnit.SECONDS);
      is(true, delivery != null);
      Webhook webhook = new Webhook();
      webhook.verifyHeader(delivery.body(), delivery.signature(), endpoint.getSecret(), Webhook.DEFAULT_TOLERANCE_MILLIS);
      is("organization.created", webhook.constructEvent(delivery.body(), delivery.signature(), endpoint.getSecret()).get("event").asText());
      webhook.constructTypedEvent(delivery.body(), delivery.signature(), endpoint.getSecret());
      try {
        webhook.constructEvent(delivery.body(), delivery.signature(), endpoint.getSecret() + "x");
        throw new AssertionError("a forged signature passed");
      } catch (java.security.SignatureException expected) {
        // As it should be.
      }
      is("disabled", webhooks.updateEndpoint(endpoint.getId(), PatchField.absent(), PatchField.of(WebhookEndpointStatus.Disabled)).getStatus().getValue());
      webhooks.deleteEndpoint(endpoint.getId());
      refused(NotFoundException.class, () -> webhooks.deleteEndpoint(endpoint.getId()));
    } finally {
      server.stop(0);
    }
  }

  private interface Story {
    void tell() throws Exception;
  }

  /** A failure is noted and does not keep the other parts from running. */
  private void part(String name, Story story) {
    try {
      story.tell();
    } catch (Throwable error) {
      var line = Arrays.stream(error.getStackTrace()).filter(frame -> frame.getClassName().equals("Calls") && !Set.of("is", "refused").contains(frame.getMethodName())).findFirst();
      Map<String, String> note = new HashMap<>();
      note.put("part", name);
      note.put("line", line.map(frame -> String.valueOf(frame.getLineNumber())).orElse("?"));
      note.put("reason", error.toString());
      failed.add(note);
    }
  }

  private static <T> List<String> ids(Page<T> page, Function<T, String> idOf) {
    return page.data.stream().map(idOf).toList();
  }

  private static void is(Object expected, Object actual) {
    if (!java.util.Objects.equals(expected, actual)) throw new AssertionError("expected " + expected + ", not " + actual);
  }

  private static void refused(Class<? extends WorkOSException> kind, Runnable call) {
    try {
      call.run();
    } catch (RuntimeException error) {
      if (kind.isInstance(error)) return;
      throw error;
    }
    throw new AssertionError("it was not refused with " + kind.getSimpleName());
  }
}
