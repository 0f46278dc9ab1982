/*
 * BIGINT primary keys from sidflake for JPA: Hibernate, EclipseLink.
 *
 *     @Entity
 *     @Table(name = "orders")
 *     public class Order extends SidflakeIds.Row {
 *         public int total;
 *     }
 *
 * The key of a row is set when EntityManager.persist is called, from `id:` and the name of its table. With
 * Spring Data, let entities be Persistable, or save() takes a row that has a key for one that is stored.
 * From Hibernate 6 and EclipseLink 3 on it is jakarta.persistence.
 *
 * JavaScript rounds such numbers, so JSON has them as strings; Jackson:
 * @JsonSerialize(using = ToStringSerializer.class) on getId.
 *
 * One command is all that is needed, so no client is: with Jedis, ask() is
 * jedis.lpop("id:" + name, BATCH), and JedisConnectionException and -LOADING are what passes.
 */
import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import javax.persistence.Id;
import javax.persistence.MappedSuperclass;
import javax.persistence.PrePersist;
import javax.persistence.Table;

public final class SidflakeIds {
    private static final int BATCH = 100;
    private static final long KEEP_MS = 1000; // an ID has the time of its batch: the rest of an older one is thrown away
    private static final long PATIENCE_MS = 10000; // a sidecar that restarts is waited for
    private static final int CONNECT_MS = 1000;
    private static final int READ_MS = 2000;

    private static final URI URL =
            URI.create(System.getenv().getOrDefault("IDS_URL", "redis://127.0.0.1:6380"));
    private static final Map<String, Batch> LEFT = new HashMap<>();
    private static Socket socket;
    private static InputStream in;

    private SidflakeIds() {
    }

    /** Whoever extends it has a key from sidflake. */
    @MappedSuperclass
    public abstract static class Row {
        @Id
        private Long id;

        public Long getId() {
            return id;
        }

        @PrePersist
        void takeKey() {
            if (id == null) {
                id = next(getClass().getAnnotation(Table.class).name());
            }
        }
    }

    private static final class Batch {
        final ArrayDeque<Long> ids = new ArrayDeque<>();
        final long taken = now();
    }

    /** The server's own words, and no connection that failed. */
    private static final class Refused extends Exception {
        Refused(String words) {
            super(words);
        }
    }

    /** A fresh ID, for any thread. */
    public static synchronized long next(String name) {
        Batch batch = LEFT.get(name);
        if (batch == null || batch.ids.isEmpty() || now() - batch.taken > KEEP_MS) {
            batch = take(name);
            LEFT.put(name, batch);
        }
        return batch.ids.remove();
    }

    private static long now() {
        return System.nanoTime() / 1000000;
    }

    /* To ask again does no harm: IDs whose reply was lost are never given to others. */
    private static Batch take(String name) {
        long till = now() + PATIENCE_MS;
        for (long pause = 50;; pause = Math.min(2 * pause, 1000)) {
            try {
                return ask(name);
            } catch (IOException | Refused e) {
                disconnect();
                if (!passes(e) || now() + pause > till) {
                    throw new IllegalStateException("no IDs: " + e.getMessage(), e);
                }
            }
            try {
                Thread.sleep(pause);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new IllegalStateException("no IDs: interrupted", e);
            }
        }
    }

    /* Whether to ask again: no connection, no answer, -LOADING and -TRYAGAIN. */
    private static boolean passes(Exception e) {
        return e instanceof IOException || e.getMessage().matches("(?s)(LOADING|TRYAGAIN).*");
    }

    // ---- the Redis protocol, as much of it as LPOP needs

    private static Batch ask(String name) throws IOException, Refused {
        connect();
        String key = "id:" + name;
        String request = "*3\r\n" + bulk("LPOP") + bulk(key) + bulk(String.valueOf(BATCH));
        socket.getOutputStream().write(request.getBytes(StandardCharsets.US_ASCII));
        int n = length('*');
        if (n <= 0) {
            throw new Refused("is it sidflake that listens at IDS_URL?");
        }
        Batch batch = new Batch();
        for (int i = 0; i < n; i++) {
            length('$');
            batch.ids.add(Long.parseLong(line()));
        }
        return batch;
    }

    private static String bulk(String text) {
        return "$" + text.length() + "\r\n" + text + "\r\n";
    }

    private static int length(char kind) throws IOException, Refused {
        String line = line();
        if (line.charAt(0) == '-') {
            throw new Refused(line.substring(1));
        }
        if (line.charAt(0) != kind) {
            throw new Refused("expected a reply that begins with " + kind + ", found " + line);
        }
        return Integer.parseInt(line.substring(1));
    }

    private static String line() throws IOException {
        StringBuilder line = new StringBuilder();
        for (int c = in.read(); c != '\n'; c = in.read()) {
            if (c < 0) {
                throw new EOFException("the connection was closed");
            }
            line.append((char) c);
        }
        if (line.length() < 2) {
            throw new EOFException("an empty line");
        }
        return line.substring(0, line.length() - 1);
    }

    private static void connect() throws IOException {
        if (socket == null) {
            socket = new Socket();
            socket.setTcpNoDelay(true);
            socket.setSoTimeout(READ_MS);
            socket.connect(new InetSocketAddress(URL.getHost(), URL.getPort() < 0 ? 6380 : URL.getPort()), CONNECT_MS);
            in = new BufferedInputStream(socket.getInputStream());
        }
    }

    private static void disconnect() {
        try {
            if (socket != null) {
                socket.close();
            }
        } catch (IOException ignored) {
            // it is given up all the same
        }
        socket = null;
    }
}
