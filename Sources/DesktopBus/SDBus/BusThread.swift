internal import CallBasics
internal import CSystemd
internal import Glibc

/// What the thread of a bus does: it connects, sends what others ask for, and hands on what arrives.
///
/// Source: sd-bus(3); sd_bus_get_fd(3), "sd_bus_get_timeout" for the loop.
struct BusThread: Sendable {
    let requests: BusRequests
    let opened: BusResult<Void>
    let onSignal: @Sendable (BusSignal) -> Void

    /// Connects to the first of `addresses` that can be used, and serves it to its end.
    ///
    /// Thread: the caller's, for as long as the connection lasts.
    func run(_ addresses: [String], until deadline: ContinuousClock.Instant) {
        var failure = BusError(.noBus, "There is no session bus. Start a desktop session.")
        for (index, address) in addresses.enumerated() where !requests.isClosed {
            let now = ContinuousClock.now
            let share = (deadline - now) / (addresses.count - index)
            let traffic = BusTraffic(onSignal: onSignal)
            do throws(BusError) {
                let bus = try connect(to: address, traffic, until: now + share)
                try open(bus, address, until: now + share)
                opened.end(with: .success(()))
                return serve(bus, traffic)
            } catch {
                failure = error
            }
        }
        opened.end(with: .failure(failure))
        requests.end(failure)
    }

    /// Connects to the socket of a bus; tries again while its queue of connections is full, which nobody tells the end of.
    private func connect(
        to address: String,
        _ traffic: BusTraffic,
        until deadline: ContinuousClock.Instant
    ) throws(BusError) -> OpenBus {
        while true {
            do throws(BusFailure) {
                return try OpenBus(address, traffic)
            } catch {
                guard error.code == EAGAIN else { throw BusError(notReached: address, error) }
            }
            try checkWanted(address, until: deadline)
            var event = pollfd(fd: requests.descriptor, events: Int16(POLLIN), revents: 0)
            poll(&event, 1, Self.retryInterval)
        }
    }

    private func checkWanted(_ address: String, until deadline: ContinuousClock.Instant) throws(BusError) {
        guard !requests.isClosed else { throw .closed() }
        guard .now < deadline else {
            throw BusError(.timedOut, "The bus at \(address) did not let us in in time. Check that it runs.")
        }
    }

    /// Units: milliseconds.
    private static var retryInterval: CInt { 10 }

    /// Waits until the bus has let this user in and given it a name.
    private func open(
        _ bus: OpenBus,
        _ address: String,
        until deadline: ContinuousClock.Instant
    ) throws(BusError) {
        while true {
            let isBusy: Bool
            do throws(BusFailure) {
                isBusy = try bus.process()
            } catch {
                throw BusError(notReached: address, error)
            }
            if bus.isReady { return }
            try checkWanted(address, until: deadline)
            if !isBusy { bus.wait(beside: requests.descriptor, until: deadline) }
        }
    }

    private func serve(_ bus: OpenBus, _ traffic: BusTraffic) {
        var failure = BusError.closed()
        do throws(BusFailure) {
            while !requests.isClosed {
                for request in requests.take() { traffic.send(request, over: bus) }
                // One message at a time: requests are not held up by a bus that never ceases to send.
                let isBusy = try bus.process()
                traffic.endLate(at: .now)
                if !isBusy { bus.wait(beside: requests.descriptor, until: traffic.earliestDeadline) }
            }
        } catch {
            failure = .closed(error)
        }
        requests.end(failure)
        traffic.end(failure)
    }
}

/// A bus that is spoken to, closed with the object whatever state it is in.
final class OpenBus {
    private let bus: OpaquePointer
    /// Gets what arrives; sd-bus does not keep it.
    private let traffic: BusTraffic

    /// Begins to connect.
    init(_ address: String, _ traffic: BusTraffic) throws(BusFailure) {
        var created: OpaquePointer?
        try BusFailure.check(sd_bus_new(&created))
        guard let bus = created else { throw BusFailure(code: ENOMEM) }
        self.bus = bus
        self.traffic = traffic
        try BusFailure.check(sd_bus_set_address(bus, address))
        // It says Hello, and is ready once it has a name.
        try BusFailure.check(sd_bus_set_bus_client(bus, 1))
        try BusFailure.check(sd_bus_negotiate_fds(bus, 0))
        let context = Unmanaged.passUnretained(traffic).toOpaque()
        let filter: sd_bus_message_handler_t = { message, context, _ in
            guard let message, let context else { return 0 }
            return Unmanaged<BusTraffic>.fromOpaque(context).takeUnretainedValue().take(message) ? 1 : 0
        }
        try BusFailure.check(sd_bus_add_filter(bus, nil, filter, context))
        try BusFailure.check(sd_bus_start(bus))
    }

    deinit {
        // Closes the socket without a wait for what was not written.
        sd_bus_close_unref(bus)
    }

    var isReady: Bool { sd_bus_is_ready(bus) > 0 }

    /// Does one piece of work; false when there is none now.
    func process() throws(BusFailure) -> Bool {
        try BusFailure.check(sd_bus_process(bus, nil)) > 0
    }

    func send(_ call: BusCall) throws(BusFailure) -> UInt64 {
        try call.send(over: bus)
    }

    /// Waits until there is work, `descriptor` is readable, or `deadline`.
    func wait(beside descriptor: CInt, until deadline: ContinuousClock.Instant?) {
        var timeout = UInt64.max
        let events = sd_bus_get_events(bus)
        // A bus that cannot say what it waits for is over, as the next piece of work tells.
        guard events >= 0, sd_bus_get_timeout(bus, &timeout) >= 0 else { return }
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        let now = UInt64(time.tv_sec) * 1_000_000 + UInt64(time.tv_nsec) / 1000
        var limits: [Duration] = []
        if timeout != .max { limits.append(.microseconds(Int64(clamping: timeout > now ? timeout - now : 0))) }
        if let deadline { limits.append(deadline - .now) }
        var polled = [
            pollfd(fd: sd_bus_get_fd(bus), events: Int16(truncatingIfNeeded: events), revents: 0),
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
        ]
        poll(&polled, nfds_t(polled.count), limits.min().map(Self.milliseconds) ?? -1)
    }

    /// For poll(2), rounded up so that a limit has passed after the wait.
    private static func milliseconds(_ duration: Duration) -> CInt {
        CInt(clamping: Int64(max(0, duration / .milliseconds(1)).rounded(.up)))
    }
}

/// The calls that wait for their replies, and where signals go.
final class BusTraffic {
    private let onSignal: @Sendable (BusSignal) -> Void
    /// By the numbers of the calls.
    private var waiting: [UInt64: BusRequest] = [:]

    init(onSignal: @escaping @Sendable (BusSignal) -> Void) {
        self.onSignal = onSignal
    }

    /// When the first call has waited long enough; nil when none waits.
    var earliestDeadline: ContinuousClock.Instant? { waiting.values.lazy.map(\.deadline).min() }

    func send(_ request: BusRequest, over bus: OpenBus) {
        do throws(BusFailure) {
            waiting[try bus.send(request.call)] = request
        } catch  where error.isOfConnection {
            // The bus has gone, and nothing was read yet that says so.
            request.reply.end(with: .failure(BusError.closed(error)))
        } catch {
            let text = "\(request.call.member) could not be sent: \(error.reason). Check what was asked for."
            request.reply.end(with: .failure(BusError(.protocolViolation, text)))
        }
    }

    /// Takes a message; false when it is none of ours.
    func take(_ message: OpaquePointer) -> Bool {
        var type: UInt8 = 0
        guard sd_bus_message_get_type(message, &type) >= 0 else { return false }
        if Int(type) == Int(SD_BUS_MESSAGE_SIGNAL) {
            if let signal = BusSignal(message) { onSignal(signal) }
            return true
        }
        var number: UInt64 = 0
        // An answer that came too late has nobody who waits.
        guard sd_bus_message_get_reply_cookie(message, &number) >= 0,
            let request = waiting.removeValue(forKey: number)
        else { return false }
        request.reply.end(with: Self.reply(message, to: request.call))
        return true
    }

    /// Ends the calls whose time is over.
    func endLate(at now: ContinuousClock.Instant) {
        guard let earliestDeadline, earliestDeadline <= now else { return }
        for (number, request) in waiting where request.deadline <= now {
            waiting[number] = nil
            request.timeOut()
        }
    }

    /// Ends all calls.
    func end(_ error: BusError) {
        for request in waiting.values { request.reply.end(with: .failure(error)) }
        waiting = [:]
    }

    private static func reply(_ message: OpaquePointer, to call: BusCall) -> Result<[BusValue], any Error> {
        if let error = sd_bus_message_get_error(message) {
            let name = error.pointee.name.map { String(cString: $0) } ?? "no name"
            let text = error.pointee.message.map { String(cString: $0) } ?? ""
            let message = "\(call.destination) refused \(call.member): \(name) \(text). Check that service."
            return .failure(BusError(.refused(name), message))
        }
        do throws(BusFailure) {
            return .success(try BusValue.body(of: message))
        } catch {
            let message =
                "The answer of \(call.destination) to \(call.member) cannot be read: \(error.reason). Check that service."
            return .failure(BusError(.protocolViolation, message))
        }
    }
}

extension BusSignal {
    /// The signal in a message; nil when it is not to be read.
    fileprivate init?(_ message: OpaquePointer) {
        guard let sender = sd_bus_message_get_sender(message), let path = sd_bus_message_get_path(message),
            let interface = sd_bus_message_get_interface(message), let member = sd_bus_message_get_member(message),
            let body = try? BusValue.body(of: message)
        else { return nil }
        self.init(
            sender: String(cString: sender),
            path: String(cString: path),
            interface: String(cString: interface),
            member: String(cString: member),
            body: body
        )
    }
}

extension BusFailure {
    /// Whether the connection is over, and not what was sent wrong.
    fileprivate var isOfConnection: Bool { [ENOTCONN, EPIPE, ECONNRESET, ESHUTDOWN, ECONNABORTED].contains(code) }
}

extension BusError {
    fileprivate init(notReached address: String, _ failure: BusFailure) {
        switch failure.code {
        case EPERM, EACCES:
            self.init(.noBus, "The bus at \(address) does not let this user in: \(failure.reason). Check its rights.")
        default:
            self.init(.noBus, "The bus at \(address) is not to be reached: \(failure.reason). Start a desktop session.")
        }
    }

    /// The connection is over, because of `failure` or because it was closed here.
    fileprivate static func closed(_ failure: BusFailure? = nil) -> BusError {
        guard let failure else { return BusError(.disconnected, "The connection to the bus was closed here.") }
        let text = "The bus closed the connection: \(failure.reason). Start a desktop session."
        return BusError(.disconnected, text)
    }
}
