import Foundation
import Glibc
import LocalMessaging
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine)
struct OpenFileRealTimeTests {
    @Test func `a pipe that nobody writes to is opened without a wait, and reads wait`() async throws {
        await #expect(processExitsWith: .success) {
            // A wait would be for ever.
            alarm(20)
            let path = NSTemporaryDirectory() + "pipe-\(UUID().uuidString)"
            defer { unlink(path) }
            try #require(mkfifo(path, 0o600) == 0)
            let file = try OpenFile(readingFrom: path)
            #expect(fcntl(file.descriptor, F_GETFL) & O_NONBLOCK == 0)
            #expect(fcntl(file.descriptor, F_GETFD) & FD_CLOEXEC != 0)
        }
    }

    @Test func `a file that is not there is named`() throws {
        let error = #expect(throws: MessagingError.self) { try OpenFile(readingFrom: "/nowhere/file") }
        #expect(error?.description.contains("/nowhere/file") == true)
    }
}
