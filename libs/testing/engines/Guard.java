import static java.util.Map.entry;

import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.bson.BinData;
import de.bwaldvogel.mongo.bson.BsonTimestamp;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.exception.MongoServerError;
import io.netty.channel.Channel;
import io.netty.util.AttributeKey;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.MessageDigest;
import java.security.PrivateKey;
import java.security.SecureRandom;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.time.Instant;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import javax.crypto.Mac;
import javax.crypto.SecretKeyFactory;
import javax.crypto.spec.PBEKeySpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * Who is let in by {@link MongodbServer}, and what it shows of itself. Its properties:
 *
 * <pre>
 *   user.NAME=PASSWORD            letters and digits; told by SCRAM-SHA-256 (RFC 7677)
 *   database=NAME                 the only one in which users may do anything
 *   rights.NAME=ONE:find+insert,OTHER:find   all that this user may do in it, by MongoDB's words for actions; otherwise everything
 *   authSource=DATABASE           where the users were made
 *   certificate=FILE, key=FILE    in PEM, RSA and PKCS #8; without them in clear
 *   replicaSet=NAME, host=NAME    it says that it is the primary of this set, at this name, and tells the time of the set
 * </pre>
 *
 * Commands that name no collection are open to every user.
 */
final class Guard {
  private static final AttributeKey<Conversation> CONVERSATION = AttributeKey.valueOf("conversation");
  private static final AttributeKey<User> USER = AttributeKey.valueOf("user");
  private static final String MECHANISM = "SCRAM-SHA-256";
  private static final int ITERATIONS = 4096;
  private static final int AUTHENTICATION_FAILED = 18;
  private static final int UNAUTHORIZED = 13;
  /** What MongoDB answers before anybody said who they are. */
  private static final Set<String> OPEN = Set.of("ismaster", "hello", "buildinfo", "ping");
  /** Whose first value is the name of a collection, and what a user has to be allowed there. */
  private static final Map<String, String> ACTIONS =
      Map.ofEntries(
          entry("find", "find"),
          entry("aggregate", "find"),
          entry("count", "find"),
          entry("distinct", "find"),
          entry("insert", "insert"),
          entry("update", "update"),
          entry("findandmodify", "find"),
          entry("delete", "remove"),
          entry("create", "createCollection"),
          entry("drop", "dropCollection"),
          entry("createindexes", "createIndex"),
          entry("dropindexes", "dropIndex"),
          entry("listindexes", "listIndexes"));

  private final SecureRandom random = new SecureRandom();
  private final AtomicInteger asked = new AtomicInteger();
  private final Map<String, User> users = new HashMap<>();
  private final Properties properties;
  private final String address;

  private Guard(Properties properties, int port) throws GeneralSecurityException {
    this.properties = properties;
    address = properties.getProperty("host", "127.0.0.1") + ":" + port;
    for (String property : properties.stringPropertyNames())
      if (property.startsWith("user.")) {
        String name = property.substring("user.".length());
        users.put(name, new User(properties.getProperty(property), rightsIn(properties.getProperty("rights." + name)), bytes(16)));
      }
  }

  static Guard read(Path file, int port) throws Exception {
    Properties properties = new Properties();
    try (InputStream text = Files.newInputStream(file)) {
      properties.load(text);
    }
    return new Guard(properties, port);
  }

  void encrypt(MongoServer server) throws Exception {
    String certificate = properties.getProperty("certificate");
    if (certificate == null) return;
    X509Certificate shown;
    try (InputStream text = Files.newInputStream(Path.of(certificate))) {
      shown = (X509Certificate) CertificateFactory.getInstance("X.509").generateCertificate(text);
    }
    String pem = Files.readString(Path.of(properties.getProperty("key"))).replaceAll("-----[A-Z ]+-----|\\s", "");
    PrivateKey key = KeyFactory.getInstance("RSA").generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(pem)));
    server.enableSsl(key, null, shown);
  }

  /** Null where the command may go its way. */
  Document answer(Channel channel, String database, String command, Document query) {
    if (command.equalsIgnoreCase("saslStart")) return start(channel, database, query);
    if (command.equalsIgnoreCase("saslContinue")) return proceed(channel, query);
    if (OPEN.contains(command.toLowerCase())) return null;
    User user = channel.attr(USER).get();
    if (user == null) throw new MongoServerError(UNAUTHORIZED, "Unauthorized", "command " + command + " requires authentication");
    if (ACTIONS.containsKey(command.toLowerCase()) && !mayDo(user, database, command, query))
      throw new MongoServerError(UNAUTHORIZED, "Unauthorized", "not authorized on " + database + " to execute command " + command);
    return null;
  }

  private boolean mayDo(User user, String database, String command, Document query) {
    if (!database.equals(properties.getProperty("database"))) return false;
    return user.rights == null || user.rights.getOrDefault(query.get(command), Set.of()).containsAll(actionsOf(command.toLowerCase(), query));
  }

  private static Set<String> actionsOf(String command, Document query) {
    Set<String> actions = new HashSet<>(Set.of(ACTIONS.get(command)));
    if (command.equals("findandmodify")) actions.add(Boolean.TRUE.equals(query.get("remove")) ? "remove" : "update");
    if (isUpsert(query)) actions.add("insert");
    if (query.get("updates") instanceof List<?> updates) for (Object update : updates) if (isUpsert((Document) update)) actions.add("insert");
    return actions;
  }

  private static boolean isUpsert(Document query) {
    return Boolean.TRUE.equals(query.get("upsert"));
  }

  /** Null: everything. */
  private static Map<String, Set<String>> rightsIn(String text) {
    if (text == null) return null;
    Map<String, Set<String>> rights = new HashMap<>();
    for (String part : text.split(",")) rights.put(part.substring(0, part.indexOf(':')), Set.of(part.substring(part.indexOf(':') + 1).split("\\+")));
    return rights;
  }

  /** Adds to what the server says: of itself, and of the time of its set. */
  Document describe(String command, Document query, Document answer) {
    String replicaSet = properties.getProperty("replicaSet");
    if (replicaSet != null) tellTime(answer);
    if (!command.equalsIgnoreCase("ismaster") && !command.equalsIgnoreCase("hello")) return answer;
    if (query.containsKey("saslSupportedMechs")) answer.put("saslSupportedMechs", List.of(MECHANISM));
    if (replicaSet == null) return answer;
    return answer
        .append("logicalSessionTimeoutMinutes", 30)
        .append("setName", replicaSet)
        .append("setVersion", 1)
        .append("hosts", List.of(address))
        .append("primary", address)
        .append("me", address)
        .append("secondary", false);
  }

  /** Its only member is never behind, so that it need not look at what it is told of times. */
  private void tellTime(Document answer) {
    BsonTimestamp time = new BsonTimestamp(Instant.now(), asked.incrementAndGet());
    Document signature = new Document("hash", new BinData(new byte[20])).append("keyId", 0L);
    answer.append("operationTime", time).append("$clusterTime", new Document("clusterTime", time).append("signature", signature));
  }

  private Document start(Channel channel, String database, Document query) {
    if (!database.equals(properties.getProperty("authSource")) || !MECHANISM.equals(query.get("mechanism"))) throw failed();
    String said = text(query.get("payload"));
    // No channel binding, and nobody speaks for another.
    if (!said.startsWith("n,,n=")) throw failed();
    String bare = said.substring("n,,".length());
    Map<String, String> parts = parts(bare);
    User user = users.get(parts.get("n"));
    if (user == null || parts.get("r") == null) throw failed();
    String nonce = parts.get("r") + Base64.getEncoder().encodeToString(bytes(18));
    String answer = "r=" + nonce + ",s=" + Base64.getEncoder().encodeToString(user.salt) + ",i=" + ITERATIONS;
    channel.attr(CONVERSATION).set(new Conversation(user, nonce, bare + "," + answer + ","));
    return told(answer, false);
  }

  private Document proceed(Channel channel, Document query) {
    Conversation conversation = channel.attr(CONVERSATION).getAndSet(null);
    String said = text(query.get("payload"));
    // Whoever cannot do without one more exchange would say nothing in it.
    if (conversation == null || !said.contains(",p=")) throw failed();
    String unproven = said.substring(0, said.lastIndexOf(",p="));
    Map<String, String> parts = parts(said);
    byte[] message = (conversation.before + unproven).getBytes(StandardCharsets.UTF_8);
    byte[] key = Base64.getDecoder().decode(parts.get("p"));
    byte[] signature = mac(conversation.user.storedKey, message);
    if (key.length != signature.length || !conversation.nonce.equals(parts.get("r"))) throw failed();
    for (int index = 0; index < key.length; index++) key[index] ^= signature[index];
    if (!MessageDigest.isEqual(hash(key), conversation.user.storedKey)) throw failed();
    channel.attr(USER).set(conversation.user);
    return told("v=" + Base64.getEncoder().encodeToString(mac(conversation.user.serverKey, message)), true);
  }

  private static Document told(String payload, boolean isDone) {
    return new Document("conversationId", 1).append("done", isDone).append("payload", new BinData(payload.getBytes(StandardCharsets.UTF_8))).append("ok", 1.0);
  }

  private static MongoServerError failed() {
    return new MongoServerError(AUTHENTICATION_FAILED, "AuthenticationFailed", "Authentication failed.");
  }

  private static String text(Object payload) {
    return new String(payload instanceof BinData ? ((BinData) payload).getData() : (byte[]) payload, StandardCharsets.UTF_8);
  }

  private static Map<String, String> parts(String message) {
    Map<String, String> parts = new HashMap<>();
    for (String part : message.split(",")) if (part.length() > 1 && part.charAt(1) == '=') parts.put(part.substring(0, 1), part.substring(2));
    return parts;
  }

  private byte[] bytes(int count) {
    byte[] bytes = new byte[count];
    random.nextBytes(bytes);
    return bytes;
  }

  private static byte[] mac(byte[] key, byte[] message) {
    try {
      Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(new SecretKeySpec(key, "HmacSHA256"));
      return mac.doFinal(message);
    } catch (GeneralSecurityException error) {
      throw new IllegalStateException(error);
    }
  }

  private static byte[] hash(byte[] bytes) {
    try {
      return MessageDigest.getInstance("SHA-256").digest(bytes);
    } catch (GeneralSecurityException error) {
      throw new IllegalStateException(error);
    }
  }

  private static final class User {
    /** Actions by collection; null: everything. */
    private final Map<String, Set<String>> rights;
    private final byte[] salt;
    private final byte[] storedKey;
    private final byte[] serverKey;

    User(String password, Map<String, Set<String>> rights, byte[] salt) throws GeneralSecurityException {
      this.rights = rights;
      this.salt = salt;
      byte[] salted =
          SecretKeyFactory.getInstance("PBKDF2WithHmacSHA256").generateSecret(new PBEKeySpec(password.toCharArray(), salt, ITERATIONS, 256)).getEncoded();
      storedKey = hash(mac(salted, "Client Key".getBytes(StandardCharsets.UTF_8)));
      serverKey = mac(salted, "Server Key".getBytes(StandardCharsets.UTF_8));
      Arrays.fill(salted, (byte) 0);
    }
  }

  private static final class Conversation {
    private final User user;
    private final String nonce;
    /** Both first messages, as both sides prove that they know them. */
    private final String before;

    Conversation(User user, String nonce, String before) {
      this.user = user;
      this.nonce = nonce;
      this.before = before;
    }
  }
}
