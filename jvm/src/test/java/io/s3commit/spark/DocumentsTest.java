package io.s3commit.spark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What the documents say is what is read of them. */
class DocumentsTest {
  @Test
  void aTasksMessageIsReadAsItWasWritten() throws IOException {
    Counted first =
        new Counted("00007", "12-a", "tasks/00007/12-a.pendingset", "ab".repeat(32), 3, 1L << 40);
    Counted second =
        new Counted("00007", "12-a", "tasks/00007/12-a.pendingset", "cd".repeat(32), 1, 0);
    List<Counted> both = List.of(first, second);
    assertEquals(both, Documents.counted(Documents.message(both)));
    assertEquals(List.of(), Documents.counted(Documents.message(List.of())));
  }

  @Test
  void aMessageOfAnotherFormIsRefused() {
    assertThrows(IOException.class, () -> Documents.counted("[{}]".getBytes()));
    assertThrows(IOException.class, () -> Documents.counted("not JSON".getBytes()));
  }
}
