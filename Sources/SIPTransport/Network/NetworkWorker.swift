internal import CLinux
internal import CallBasics
internal import Glibc
internal import Synchronization

/// The thread of a watcher, and all that it alone touches.
///
/// It has a thread, and no event loop, since a question to the kernel may wait for others who change the network just then.
final class NetworkWorker: Sendable {
    typealias Continuation = AsyncStream<NetworkChange>.Continuation

    private struct Watch {
        let remote: SocketAddress
        let continuation: Continuation
        var judge: NetworkJudge
    }

    private struct Mail {
        var lastNumber = 0
        var added: [Int: Watch] = [:]
        var ended: Set<Int> = []
        var isStopped = false
    }

    /// Datagrams that are read before the judges look; those of a storm must not keep them from it.
    private static let datagramCount = 64

    private let mail = Mutex(Mail())
    /// Written to when there is mail.
    private let notifier: CInt
    private let socket: RouteSocket
    private let query: RouteQuery

    init() throws(NetworkWatchError) {
        (socket, query) = (try RouteSocket(.all), try RouteQuery())
        notifier = linux_event_descriptor()
        guard notifier >= 0 else { throw NetworkWatchError(-notifier) }
    }

    deinit {
        if notifier >= 0 { close(notifier) }
    }

    // MARK: Control

    func start() throws(NetworkWatchError) {
        let own = Unmanaged.passRetained(self)
        let status = linux_start_thread(
            { argument in
                if let argument { Unmanaged<NetworkWorker>.fromOpaque(argument).takeRetainedValue().run() }
            },
            own.toOpaque()
        )
        guard status == 0 else {
            own.release()
            throw NetworkWatchError(-status)
        }
    }

    func add(_ remote: SocketAddress, _ continuation: Continuation) {
        let judge = NetworkJudge(at: ClockReading.now.monotonic)
        let watch = Watch(remote: remote, continuation: continuation, judge: judge)
        let number = mail.withLock { mail -> Int? in
            guard !mail.isStopped else { return nil }
            mail.lastNumber += 1
            mail.added[mail.lastNumber] = watch
            return mail.lastNumber
        }
        guard let number else { return continuation.finish() }
        continuation.onTermination = { [weak self] _ in self?.end(number) }
        notify()
    }

    func stop() {
        mail.withLock { $0.isStopped = true }
        notify()
    }

    private func end(_ number: Int) {
        mail.withLock { _ = $0.ended.insert(number) }
        notify()
    }

    private func notify() {
        var one: UInt64 = 1
        _ = write(notifier, &one, MemoryLayout.size(ofValue: one))
    }

    // MARK: The thread

    private func run() {
        var watches: [Int: Watch] = [:]
        var buffer = [UInt8](repeating: 0, count: RouteSocket.byteCount)
        while takeMail(&watches) {
            wait(until: watches.values.compactMap(\.judge.deadline).min())
            guard let messages = read(&buffer) else { break }
            for number in watches.keys.sorted() { judge(&watches[number], messages, &buffer) }
        }
        // Whoever comes after a failure is sent away, too.
        mail.withLock { $0.isStopped = true }
        _ = takeMail(&watches)
        for watch in watches.values { watch.continuation.finish() }
    }

    /// Whether it is to go on.
    private func takeMail(_ watches: inout [Int: Watch]) -> Bool {
        var count: UInt64 = 0
        // Nothing to read is what there mostly is.
        _ = Glibc.read(notifier, &count, MemoryLayout.size(ofValue: count))
        let (added, ended, isStopped) = mail.withLock { mail in
            defer { (mail.added, mail.ended) = ([:], []) }
            return (mail.added, mail.ended, mail.isStopped)
        }
        watches.merge(added) { old, _ in old }
        for number in ended { watches[number] = nil }
        return !isStopped
    }

    /// Waits for mail, for the kernel, or for a time.
    private func wait(until time: MediaTime?) {
        let nanoseconds = time.map { max($0.nanoseconds(since: ClockReading.now.monotonic), 0) }
        let milliseconds = nanoseconds.map { CInt(clamping: ($0 + 999_999) / 1_000_000) } ?? -1
        var descriptors = [notifier, socket.descriptor].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        poll(&descriptors, nfds_t(descriptors.count), milliseconds)
    }

    /// What the kernel has told; nil when it will tell nothing any more.
    private func read(_ buffer: inout [UInt8]) -> [RouteMessage]? {
        var messages: [RouteMessage] = []
        for _ in 0..<Self.datagramCount {
            switch socket.receive(&buffer) {
            case .messages(let more): messages += more
            case .nothing: return messages
            case .failed: return nil
            }
        }
        return messages
    }

    private func judge(_ watch: inout Watch?, _ messages: [RouteMessage], _ buffer: inout [UInt8]) {
        guard var judge = watch?.judge, let remote = watch?.remote else { return }
        let known = judge.path
        let change = judge.handle(messages, at: ClockReading.now.monotonic) {
            do throws(RouteQuery.NoAnswer) {
                return try query.path(towards: remote, &buffer)
            } catch {
                // It changes nothing that the kernel cannot tell now.
                return known
            }
        }
        watch?.judge = judge
        if let change { watch?.continuation.yield(change) }
    }
}
