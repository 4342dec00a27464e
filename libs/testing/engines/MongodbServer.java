import de.bwaldvogel.mongo.MongoBackend;
import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.h2.H2Backend;
import java.util.List;
import org.h2.mvstore.MVStore;

/** Speaks the protocol of MongoDB on loopback and stores in a file: {@code MongodbServer FILE PORT}. */
public final class MongodbServer {
  /** The driver refuses servers older than 4.2, which is what this one would say of itself. */
  private static final MongoVersion VERSION =
      new MongoVersion() {
        @Override
        public List<Integer> getVersionArray() {
          return List.of(6, 0, 0);
        }

        @Override
        public int getWireVersion() {
          return 17;
        }
      };

  public static void main(String[] args) {
    // The defaults are for small files: rows beyond its cache would make every write read pages first.
    MVStore file = new MVStore.Builder().fileName(args[0]).cacheSize(64).autoCommitBufferSize(8192).open();
    MongoBackend backend = new H2Backend(file).version(VERSION);
    MongoServer server = new MongoServer(backend);
    server.bind("127.0.0.1", Integer.parseInt(args[1]));
    Runtime.getRuntime().addShutdownHook(new Thread(server::shutdownNow));
  }
}
