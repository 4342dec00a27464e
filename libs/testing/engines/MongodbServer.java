import de.bwaldvogel.mongo.MongoCollection;
import de.bwaldvogel.mongo.MongoDatabase;
import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.CollectionOptions;
import de.bwaldvogel.mongo.backend.CursorRegistry;
import de.bwaldvogel.mongo.backend.DatabaseResolver;
import de.bwaldvogel.mongo.backend.Index;
import de.bwaldvogel.mongo.backend.IndexKey;
import de.bwaldvogel.mongo.backend.KeyValue;
import de.bwaldvogel.mongo.backend.QueryResult;
import de.bwaldvogel.mongo.backend.h2.H2Backend;
import de.bwaldvogel.mongo.backend.h2.H2Collection;
import de.bwaldvogel.mongo.backend.h2.H2Database;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.exception.BadValueException;
import de.bwaldvogel.mongo.oplog.Oplog;
import de.bwaldvogel.mongo.wire.bson.BsonDecoder;
import de.bwaldvogel.mongo.wire.bson.BsonEncoder;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.Spliterators;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.h2.mvstore.DataUtils;
import org.h2.mvstore.MVMap;
import org.h2.mvstore.MVStore;
import org.h2.mvstore.WriteBuffer;
import org.h2.mvstore.type.BasicDataType;
import org.h2.mvstore.type.ObjectDataType;

/** Speaks the protocol of MongoDB on loopback and stores in a file: {@code MongodbServer FILE PORT [PROPERTIES]}; {@link Guard} says what may be in the last. */
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

  public static void main(String[] args) throws Exception {
    int port = Integer.parseInt(args[1]);
    Guard guard = args.length < 3 ? null : Guard.read(Path.of(args[2]), port);
    // The defaults are for small files: rows beyond its cache would make every write read pages first.
    MVStore file = new MVStore.Builder().fileName(args[0]).cacheSize(64).autoCommitBufferSize(8192).open();
    MongoServer server = new MongoServer(new Backend(file, guard).version(VERSION));
    if (guard != null) guard.encrypt(server);
    server.bind("127.0.0.1", port);
    Runtime.getRuntime().addShutdownHook(new Thread(server::shutdownNow));
  }

  private static final class Backend extends H2Backend {
    private final Guard guard;

    Backend(MVStore file, Guard guard) {
      super(file);
      this.guard = guard;
    }

    /** Every command comes this way, in whatever form it was sent. */
    @Override
    public Document handleCommand(Channel channel, String database, String command, Document query) {
      if (guard == null) return super.handleCommand(channel, database, command, query);
      Document answer = guard.answer(channel, database, command, query);
      return answer != null ? answer : guard.describe(command, query, super.handleCommand(channel, database, command, query));
    }

    @Override
    protected MongoDatabase openOrCreateDatabase(String name) {
      MVStore file = getMvStore();
      return new H2Database(name, file, getCursorRegistry()) {
        private final Set<String> hinted = ConcurrentHashMap.newKeySet();

        @Override
        public Document handleCommand(Channel channel, String command, Document query, DatabaseResolver databases, Oplog oplog) {
          if (command.equals("drop") || command.equals("dropIndexes") || command.equals("dropDatabase")) hinted.clear();
          if (query.get("hint") instanceof Document hint) requireIndex((String) query.get(command), hint, channel, databases, oplog);
          return super.handleCommand(channel, command, query, databases, oplog);
        }

        /** Nobody looks at what a question names here; that it is not there is an error, as it is in MongoDB. */
        private void requireIndex(String collection, Document hint, Channel channel, DatabaseResolver databases, Oplog oplog) {
          String known = collection + hint;
          if (resolveCollection(collection, false) == null || hinted.contains(known)) return;
          Document question = new Document("listIndexes", collection);
          Document cursor = (Document) super.handleCommand(channel, "listIndexes", question, databases, oplog).get("cursor");
          for (Object index : (List<?>) cursor.get("firstBatch")) hinted.add(collection + ((Document) index).get("key"));
          if (!hinted.contains(known)) throw new BadValueException("error processing query: planner returned error :: caused by :: hint provided does not correspond to an existing index");
        }

        @Override
        protected Index<Object> openOrCreateUniqueIndex(String collection, String index, List<IndexKey> keys, boolean sparse) {
          // Whoever opens the map after this is given this one.
          file.openMap(getFullCollectionNamespace(collection) + "._index_" + index, new MVMap.Builder<KeyValue, Object>().keyType(new Keys()));
          return super.openOrCreateUniqueIndex(collection, index, keys, sparse);
        }

        @Override
        protected Index<Object> openOrCreateSecondaryIndex(String collection, String index, List<IndexKey> keys, boolean sparse) {
          if (keys.size() != 2) return super.openOrCreateSecondaryIndex(collection, index, keys, sparse);
          return new ListIndex(index, keys, file.openMap(getFullCollectionNamespace(collection) + "._index_" + index, new MVMap.Builder<KeyValue, Object>().keyType(new Keys())));
        }

        @Override
        protected MongoCollection<Object> openOrCreateCollection(String collection, CollectionOptions options) {
          String name = getFullCollectionNamespace(collection);
          MVMap<Object, Document> documents = file.openMap("databases." + name, new MVMap.Builder<Object, Document>().valueType(new Documents()));
          return new Listed(this, collection, options, documents, file.openMap("meta." + name), cursorRegistry);
        }
      };
    }
  }

  /** Reads a list, where one is asked for, from the index that holds it. */
  private static final class Listed extends H2Collection {
    Listed(MongoDatabase database, String name, CollectionOptions options, MVMap<Object, Document> documents, MVMap<String, Object> meta, CursorRegistry cursors) {
      super(database, name, options, documents, meta, cursors);
    }

    @Override
    protected QueryResult queryDocuments(Document query, Document orderBy, int skip, int limit, int batchSize, Document fields) {
      for (Index<Object> index : getIndexes()) {
        if (!(index instanceof ListIndex list) || !list.isInOrder(orderBy)) continue;
        Set<String> asked = list.listsIn(query);
        if (asked == null) continue;
        Stream<Object> found = asked.stream().flatMap(name -> streamOf(list.in(name, query, orderBy)));
        boolean isOne = asked.size() == 1;
        // A document that is in several lists comes once, and lists are put in order together.
        Stream<Document> documents = (isOne ? found : found.distinct()).map(this::getDocument);
        return matchDocumentsFromStream(query, documents, skip, limit, batchSize, isOne ? null : deriveComparator(orderBy), fields);
      }
      return super.queryDocuments(query, orderBy, skip, limit, batchSize, fields);
    }

    private static Stream<Object> streamOf(Iterator<Object> keys) {
      return StreamSupport.stream(Spliterators.spliteratorUnknownSize(keys, 0), false);
    }
  }

  /** Keys as they are compared and stored value by value. Otherwise both would be serialized whole at every comparison, which is most of what a write costs. */
  private static final class Keys extends BasicDataType<KeyValue> {
    private static final int OBJECT_BYTES = 64;
    private static final ObjectDataType VALUES = new ObjectDataType();

    /** What others begin with comes before them. */
    @Override
    public int compare(KeyValue one, KeyValue other) {
      int order = 0;
      for (int index = 0; order == 0 && index < Math.min(one.size(), other.size()); index++) order = VALUES.compare(one.get(index), other.get(index));
      return order == 0 ? Integer.compare(one.size(), other.size()) : order;
    }

    @Override
    public int getMemory(KeyValue key) {
      int bytes = OBJECT_BYTES;
      for (Object value : key) bytes += VALUES.getMemory(value);
      return bytes;
    }

    @Override
    public void write(WriteBuffer buffer, KeyValue key) {
      buffer.putVarInt(key.size());
      for (Object value : key) VALUES.write(buffer, value);
    }

    @Override
    public KeyValue read(ByteBuffer buffer) {
      List<Object> values = new ArrayList<>();
      for (int left = DataUtils.readVarInt(buffer); left > 0; left--) values.add(VALUES.read(buffer));
      return new KeyValue(values);
    }

    @Override
    public KeyValue[] createStorage(int size) {
      return new KeyValue[size];
    }
  }

  /** Documents as they travel: Java's own form of them takes several times as long to write and to read. */
  private static final class Documents extends BasicDataType<Document> {
    /** A guess, which decides how many share a page: to know it, each would have to be written. */
    private static final int DOCUMENT_BYTES = 2048;

    @Override
    public int getMemory(Document document) {
      return DOCUMENT_BYTES;
    }

    @Override
    public void write(WriteBuffer buffer, Document document) {
      ByteBuf bytes = Unpooled.buffer(DOCUMENT_BYTES);
      BsonEncoder.encodeDocument(document, bytes);
      buffer.put(bytes.array(), 0, bytes.writerIndex());
    }

    @Override
    public Document read(ByteBuffer buffer) {
      ByteBuf bytes = Unpooled.wrappedBuffer(buffer);
      Document document = BsonDecoder.decodeBson(bytes);
      buffer.position(buffer.position() + bytes.readerIndex());
      return document;
    }

    @Override
    public Document[] createStorage(int size) {
      return new Document[size];
    }
  }
}
