// A shared core: three pushes wake three executors, of which one fetches the messages of all; then the application starts,
// takes the place of the executor that runs, and hands over what it receives.
//
//     shared-core        swift run shared-core
//
// Here the cores are tasks of one process. In life each is a process of its own, the application's or one that a push
// woke; nothing in this file would change, because they meet only in the directory of their group.
import Foundation
import LocalMessaging
import SharedCore

/// A server, in memory: it holds each message until a core has acknowledged it.
actor Server {
    private(set) var messages: [IncomingMessage] = []
    private(set) var performed: [MessageAction] = []

    func hold(_ callID: String, _ text: String) {
        messages.append(IncomingMessage(callID: callID, sender: "anna@example.org", text: text))
    }

    func acknowledge(_ message: IncomingMessage) { messages.removeAll { $0 == message } }
    func perform(_ action: MessageAction) { performed.append(action) }
}

/// What a core runs: the only part that knows how to talk to the server.
actor ServerService: CoreService {
    private let server: Server
    private var context: CoreContext?

    init(_ server: Server) { self.server = server }

    func start(_ context: CoreContext) { self.context = context }

    func fetchPending() async throws {
        for message in await server.messages {
            try Task.checkCancellation()
            // First the commit, then the receipt: who dies in between gets the message again.
            try await context?.deliver(message)
            await server.acknowledge(message)
        }
    }

    func run() async throws {
        while true {
            try await fetchPending()
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    func perform(_ action: MessageAction) async { await server.perform(action) }
    func stop() { context = nil }
}

/// What a process does that a push woke.
///
/// It starts no core itself: the executor does when there is none.
func handlePush(_ callID: String, _ group: GroupContainer, _ server: Server) async throws {
    let core = try ExecutorCore(group: group, service: ServerService(server))
    try await core.notify(callID: callID) { notification, source in
        print("push \(callID): \(notification.text), from \(source.rawValue)")
    }
    await core.stop()
}

let directory = FileManager.default.temporaryDirectory.appending(path: "shared-core-\(UUID().uuidString)")
defer { try? FileManager.default.removeItem(at: directory) }
let group = try GroupContainer(directory: directory.path)
let store = try SharedStore(group: group)
let server = Server()

// A burst with no core running: one executor becomes the core, the others find theirs in the store.
let texts = ["1": "Lunch?", "2": "At noon?", "3": "Bring Berta"]
for (callID, text) in texts { await server.hold(callID, text) }
try await withThrowingTaskGroup(of: Void.self) { pushes in
    for callID in texts.keys { pushes.addTask { [group, server] in try await handlePush(callID, group, server) } }
    try await pushes.waitForAll()
}
print("after 3 pushes: core starts \(try await store.status().epoch)")

// A push whose message is not there yet: its executor runs the core and waits.
async let fourth: Void = handlePush("4", group, server)
while try await store.status().state != .executor { try await Task.sleep(for: .milliseconds(5)) }

// The application starts: the executor gives way, and waits for what the main hands over.
let main = try MainCore(group: group, service: ServerService(server))
try await main.start()
print("the application runs: state \(try await store.status().state.rawValue)")
await server.hold("4", "I am there")
try await fourth

// With the application in front, it performs what people do with notifications.
let executor = try ExecutorCore(group: group, service: ServerService(server))
let isDone = try await executor.perform(MessageAction(id: "a1", callID: "4", kind: .reply("Coming")))
print("reply performed by the main: \(isDone), at the server: \(await server.performed.count)")
await main.stop()
let counts = try await store.counts()
print("state \(try await store.status().state.rawValue), pending \(counts.pending), shown \(counts.acknowledged)")
