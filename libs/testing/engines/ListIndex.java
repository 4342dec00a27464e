import de.bwaldvogel.mongo.MongoCollection;
import de.bwaldvogel.mongo.backend.Index;
import de.bwaldvogel.mongo.backend.IndexKey;
import de.bwaldvogel.mongo.backend.KeyValue;
import de.bwaldvogel.mongo.bson.Document;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Set;
import org.h2.mvstore.Cursor;
import org.h2.mvstore.MVMap;

/**
 * An index on two fields, which holds lists: documents by the text in the first field, in the order of the text in the second. A page of a list is read from it without a
 * look at the other documents. What is asked in another way is looked for among all of them.
 */
final class ListIndex extends Index<Object> {
  private final String list;
  private final String place;
  /** Under list, place and the document's own key, which is what stands there too. */
  private final MVMap<KeyValue, Object> keys;

  ListIndex(String name, List<IndexKey> fields, MVMap<KeyValue, Object> keys) {
    // Sparse: nobody asks it where a document is that is to be removed.
    super(name, fields, true);
    this.list = fields.get(0).getKey();
    this.place = fields.get(1).getKey();
    this.keys = keys;
  }

  /** The lists that are asked for; null where it is asked for something else. */
  Set<String> listsIn(Document query) {
    Object asked = query.get(list);
    if (asked instanceof String) return Set.of((String) asked);
    if (!(asked instanceof Document) || !((Document) asked).keySet().equals(Set.of("$in"))) return null;
    Set<String> lists = new LinkedHashSet<>();
    for (Object one : (Collection<?>) ((Document) asked).get("$in")) {
      if (!(one instanceof String)) return null;
      lists.add((String) one);
    }
    return lists;
  }

  /** Whether the order is its own: what is asked for in no order may come in any. */
  boolean isInOrder(Document orderBy) {
    return orderBy == null || orderBy.isEmpty() || orderBy.keySet().equals(Set.of(place));
  }

  /** The keys of the documents in a list, in order, at most those between the bounds of the query. */
  Iterator<Object> in(String name, Document query, Document orderBy) {
    boolean isAscending = orderBy == null || orderBy.isEmpty() || ((Number) orderBy.get(place)).intValue() > 0;
    String low = "";
    String high = null;
    for (Document range : rangesIn(query)) {
      for (String operator : List.of("$gt", "$gte")) {
        if (range.get(operator) instanceof String bound && bound.compareTo(low) > 0) low = bound;
      }
      for (String operator : List.of("$lt", "$lte")) {
        if (range.get(operator) instanceof String bound && (high == null || bound.compareTo(high) < 0)) high = bound;
      }
    }
    KeyValue first = new KeyValue(name, low);
    // Behind everything that begins with the same.
    KeyValue last = high == null ? new KeyValue(name + '\0') : new KeyValue(name, high + '\0');
    return new Keys(isAscending ? keys.cursor(first, last, false) : keys.cursor(last, first, true));
  }

  private List<Document> rangesIn(Document query) {
    List<Document> ranges = new ArrayList<>();
    if (query.get(place) instanceof Document range) ranges.add(range);
    if (query.get("$and") instanceof Collection<?> all) {
      for (Object each : all) if (each instanceof Document part) ranges.addAll(rangesIn(part));
    }
    return ranges;
  }

  /** What stands under keys between two, whether or not they are there themselves. */
  private static final class Keys implements Iterator<Object> {
    private final Cursor<KeyValue, Object> cursor;

    Keys(Cursor<KeyValue, Object> cursor) {
      this.cursor = cursor;
    }

    @Override
    public boolean hasNext() {
      return cursor.hasNext();
    }

    @Override
    public Object next() {
      if (!cursor.hasNext()) throw new NoSuchElementException();
      cursor.next();
      return cursor.getValue();
    }
  }

  private List<KeyValue> keysOf(Document document, Object key) {
    List<KeyValue> all = new ArrayList<>();
    for (KeyValue values : getKeyValues(document)) {
      // What has no place stands before everything that has one.
      if (values.get(0) instanceof String) all.add(new KeyValue(values.get(0), values.get(1) instanceof String ? values.get(1) : "", key));
    }
    return all;
  }

  @Override
  public void add(Document document, Object position, MongoCollection<Object> collection) {
    for (KeyValue key : keysOf(document, position)) keys.put(key, position);
  }

  @Override
  public Object remove(Document document) {
    for (KeyValue key : keysOf(document, document.get("_id"))) keys.remove(key);
    return null;
  }

  @Override
  public void updateInPlace(Document before, Document after, Object position, MongoCollection<Object> collection) {
    if (nullAwareEqualsKeys(before, after)) return;
    remove(before);
    add(after, position, collection);
  }

  @Override
  public void checkAdd(Document document, MongoCollection<Object> collection) {}

  @Override
  public void checkUpdate(Document before, Document after, MongoCollection<Object> collection) {}

  @Override
  public Object getPosition(Document document) {
    return null;
  }

  /** The collection asks it in its own way. */
  @Override
  public boolean canHandle(Document query) {
    return false;
  }

  @Override
  public Iterable<Object> getPositions(Document query) {
    throw new UnsupportedOperationException();
  }

  @Override
  public long getCount() {
    return keys.sizeAsLong();
  }

  @Override
  public long getDataSize() {
    return 0;
  }

  @Override
  public void drop() {
    keys.clear();
  }
}
