internal import CCAres
internal import CallBasics
internal import Glibc
internal import SIP
internal import Synchronization

/// The thread of a client, and all that it alone touches.
final class DNSWorker: Sendable {
    /// One question on its way through c-ares.
    private final class Request: Sendable {
        let answer: @Sendable (DNSAnswer) -> Void

        init(_ answer: @escaping @Sendable (DNSAnswer) -> Void) { self.answer = answer }
    }

    private struct Mail {
        var questions: [(DNSQuestion, Request)] = []
        var isStopped = false
    }

    private let mail = Mutex(Mail())
    /// Written to when there is mail.
    private let bell: Int32
    /// The thread's alone once that has started.
    nonisolated(unsafe) private let channel: ares_channel

    init(servers: [SocketAddress], timeout: Duration, tries: Int) throws(DNSClientError) {
        let made = Self.initialized
        guard made == ARES_SUCCESS else { throw Self.unavailable(made) }
        var options = ares_options()
        options.timeout = Int32(clamping: Int(timeout.nanoseconds / 1_000_000))
        options.tries = Int32(clamping: tries)
        var channel: ares_channel?
        let status = ares_init_options(&channel, &options, Int32(ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES))
        guard status == ARES_SUCCESS, let channel else { throw Self.unavailable(status) }
        self.channel = channel
        bell = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard bell >= 0 else {
            throw DNSClientError(
                .unavailable,
                "There is no descriptor for the name client. Close some, or raise the limit."
            )
        }
        guard !servers.isEmpty else { return }
        let list = servers.map { "\($0)" }.joined(separator: ",")
        let set = ares_set_servers_ports_csv(channel, list)
        guard set == ARES_SUCCESS else { throw Self.unavailable(set) }
    }

    deinit {
        if bell >= 0 { close(bell) }
        ares_destroy(channel)
    }

    private static let initialized = ares_library_init(ARES_LIB_INIT_NONE)

    private static func unavailable(_ status: Int32) -> DNSClientError {
        let reason = ares_strerror(status).map { String(cString: $0) } ?? "status \(status)"
        return DNSClientError(
            .unavailable,
            "Names cannot be asked for: \(reason). Check /etc/resolv.conf, or name a server."
        )
    }

    // MARK: Control

    func start() throws(DNSClientError) {
        var thread = pthread_t()
        let own = Unmanaged.passRetained(self)
        let status = pthread_create(
            &thread,
            nil,
            { argument in
                if let argument { Unmanaged<DNSWorker>.fromOpaque(argument).takeRetainedValue().run() }
                return nil
            },
            own.toOpaque()
        )
        guard status == 0 else {
            own.release()
            throw DNSClientError(
                .unavailable,
                "There is no thread for the name client. End others, or raise the limit."
            )
        }
        pthread_detach(thread)
    }

    func ask(_ question: DNSQuestion, _ answer: @escaping @Sendable (DNSAnswer) -> Void) {
        let isStopped = mail.withLock { mail in
            if !mail.isStopped { mail.questions.append((question, Request(answer))) }
            return mail.isStopped
        }
        if isStopped { return answer(.failure) }
        ring()
    }

    func stop() {
        mail.withLock { $0.isStopped = true }
        ring()
    }

    private func ring() {
        var one: UInt64 = 1
        _ = write(bell, &one, MemoryLayout.size(ofValue: one))
    }

    // MARK: The thread

    private func run() {
        while true {
            let (questions, isStopped) = mail.withLock { mail in
                defer { mail.questions = [] }
                return (mail.questions, mail.isStopped)
            }
            for (question, request) in questions { send(question, request) }
            guard !isStopped else { break }
            wait()
        }
        // Answers all that is open.
        ares_cancel(channel)
    }

    private func send(_ question: DNSQuestion, _ request: Request) {
        let type: Int32 =
            switch question.kind {
            case .a: 1
            case .aaaa: 28
            case .srv: 33
            case .naptr: 35
            }
        ares_query(
            channel,
            question.name.description,
            1,
            type,
            { argument, status, _, bytes, count in
                guard let argument else { return }
                let request = Unmanaged<Request>.fromOpaque(argument).takeRetainedValue()
                request.answer(DNSWorker.answer(status, bytes, count))
            },
            Unmanaged.passRetained(request).toOpaque()
        )
    }

    private static func answer(_ status: Int32, _ bytes: UnsafeMutablePointer<UInt8>?, _ count: Int32) -> DNSAnswer {
        if let bytes, count > 0 {
            return DNSMessage.answer(in: Array(UnsafeBufferPointer(start: bytes, count: Int(count))))
        }
        return status == ARES_ETIMEOUT || status == ARES_ECONNREFUSED ? .timeout : .failure
    }

    /// Waits for the bell, the sockets of c-ares or its next deadline, and lets it go on.
    private func wait() {
        var sockets = [ares_socket_t](repeating: -1, count: Int(ARES_GETSOCK_MAXNUM))
        let bits = UInt32(bitPattern: ares_getsock(channel, &sockets, Int32(sockets.count)))
        var waited = [pollfd(fd: bell, events: Int16(POLLIN), revents: 0)]
        for (index, socket) in sockets.enumerated() {
            let (reads, writes) = (bits & 1 << index != 0, bits & 1 << (index + sockets.count) != 0)
            guard reads || writes else { continue }
            waited.append(pollfd(fd: socket, events: Int16((reads ? POLLIN : 0) | (writes ? POLLOUT : 0)), revents: 0))
        }
        var time = timeval()
        let hasDeadline = ares_timeout(channel, nil, &time) != nil
        let milliseconds = hasDeadline ? Int32(clamping: time.tv_sec * 1000 + Int(time.tv_usec) / 1000 + 1) : -1
        poll(&waited, nfds_t(waited.count), milliseconds)
        if waited[0].revents != 0 {
            var count: UInt64 = 0
            _ = read(bell, &count, MemoryLayout.size(ofValue: count))
        }
        for one in waited.dropFirst() where one.revents != 0 {
            let reads = Int32(one.revents) & (POLLIN | POLLERR | POLLHUP) != 0
            let writes = Int32(one.revents) & POLLOUT != 0
            ares_process_fd(channel, reads ? one.fd : -1, writes ? one.fd : -1)
        }
        ares_process_fd(channel, -1, -1)
    }
}
