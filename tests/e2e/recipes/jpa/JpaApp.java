/* An application with JPA, by Hibernate; it does what rows.py says, with programs for children of fork. */
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import javax.persistence.Entity;
import javax.persistence.EntityManager;
import javax.persistence.EntityManagerFactory;
import javax.persistence.Persistence;
import javax.persistence.Table;

public final class JpaApp {
    private static final int BEFORE = 40;
    private static final int CHILDREN = 3;
    private static final int THREADS = 3;
    private static final int ROWS = 40;
    private static final long PATIENCE_MS = 45000;

    private static EntityManagerFactory factory;

    private JpaApp() {
    }

    @Entity
    @Table(name = "orders")
    public static class Order extends SidflakeIds.Row {
        public int total = 7;
    }

    private static void inTransaction(java.util.function.Consumer<EntityManager> work) {
        EntityManager manager = factory.createEntityManager();
        try {
            manager.getTransaction().begin();
            work.accept(manager);
            manager.getTransaction().commit();
        } finally {
            manager.close();
        }
    }

    private static void insert(int n) {
        for (int i = 0; i < n; i++) {
            inTransaction(manager -> manager.persist(new Order()));
        }
    }

    private static void inThreads() throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(THREADS);
        Callable<Void> rows = () -> {
            insert(ROWS);
            return null;
        };
        List<Future<Void>> done = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            done.add(threads.submit(rows));
        }
        threads.shutdown();
        for (Future<Void> one : done) {
            one.get();
        }
    }

    private static void halves(String go) throws Exception {
        inThreads();
        for (long till = System.currentTimeMillis() + PATIENCE_MS; !new File(go).exists(); Thread.sleep(20)) {
            if (System.currentTimeMillis() > till) {
                throw new IllegalStateException("no sign to go on");
            }
        }
        inThreads();
    }

    private static Process child(String database, String go) throws IOException {
        return new ProcessBuilder(System.getProperty("java.home") + "/bin/java", "-XX:TieredStopAtLevel=1",
                "-cp", System.getProperty("java.class.path"), "JpaApp", database, go).inheritIO().start();
    }

    private static void write(String database, String go, String json) throws Exception {
        factory = Persistence.createEntityManagerFactory("orders", Map.of("javax.persistence.jdbc.url",
                "jdbc:sqlite:" + database + "?busy_timeout=40000&synchronous=OFF&transaction_mode=IMMEDIATE"));
        if (json == null) {
            halves(go);
            return;
        }
        inTransaction(manager -> manager.createNativeQuery(
                "CREATE TABLE orders (id BIGINT PRIMARY KEY, total INTEGER NOT NULL)").executeUpdate());
        insert(BEFORE);
        List<Process> children = new ArrayList<>();
        for (int i = 0; i < CHILDREN; i++) {
            children.add(child(database, go));
        }
        halves(go);
        for (Process one : children) {
            if (one.waitFor() != 0) {
                throw new IllegalStateException("a child failed");
            }
        }
        List<Order> orders = factory.createEntityManager()
                .createQuery("select o from JpaApp$Order o", Order.class).getResultList();
        Files.writeString(Path.of(json), orders.stream()
                .map(o -> "{\"id\": \"" + o.getId() + "\", \"total\": " + o.total + "}")
                .collect(Collectors.joining(",", "[", "]")));
    }

    public static void main(String[] args) throws Exception {
        if (args.length > 0) {
            write(args[0], args[1], args.length > 2 ? args[2] : null);
            return;
        }
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        while (lines.readLine() != null) {
            try {
                System.out.println("id " + SidflakeIds.next("orders"));
            } catch (RuntimeException e) {
                System.out.println("error " + e.getClass().getSimpleName() + " " + e.getMessage());
            }
        }
    }
}
