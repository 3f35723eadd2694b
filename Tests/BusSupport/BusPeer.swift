import CLinux
import CSystemd
import Foundation
import Glibc
import Synchronization

package import DesktopBus

/// One end of a D-Bus connection that a test plays, by sd-bus and on a thread of its own.
package final class BusPeer: Sendable {
    /// What becomes of a call.
    package enum Answer: Sendable {
        case values([BusValue])
        /// A signal comes behind it.
        case valuesAndSignal([BusValue], Signal)
        case error(String)
        /// None comes.
        case nothing
        /// The connection ends instead.
        case hangUp
    }

    /// A call that arrived.
    package struct Call: Sendable {
        package let path: String
        package let member: String
        package let body: [BusValue]
    }

    /// A signal that is sent.
    package struct Signal: Sendable {
        let path: String
        let interface: String
        let member: String
        let body: [BusValue]

        package init(_ path: String, _ interface: String, _ member: String, _ body: [BusValue]) {
            (self.path, self.interface, self.member, self.body) = (path, interface, member, body)
        }

        fileprivate func send(over bus: OpaquePointer?) throws {
            var created: OpaquePointer?
            try BusFailure.check(sd_bus_message_new_signal(bus, &created, path, interface, member))
            guard let message = created else { throw BusFailure(code: ENOMEM) }
            defer { sd_bus_message_unref(message) }
            for value in body { try value.append(to: message) }
            try BusFailure.check(sd_bus_send(bus, message, nil))
        }
    }

    /// Used under the lock alone.
    private struct Bus: @unchecked Sendable {
        let pointer: OpaquePointer
    }

    private let bus: Mutex<Bus>
    private let answering: Answering
    private let event = linux_event_descriptor()
    private let isWanted = Atomic(true)
    private let ended = BusResult<Void>()

    /// A client of a bus: it has a name there when this returns.
    package convenience init(
        clientOf address: String,
        answer: @escaping @Sendable (Call) -> Answer
    ) throws {
        try self.init(answer: answer) { bus in
            try BusFailure.check(sd_bus_set_address(bus, address))
            try BusFailure.check(sd_bus_set_bus_client(bus, 1))
        }
        try bus.withLock { bus in
            // Waits for the name.
            var name: UnsafePointer<CChar>?
            try BusFailure.check(sd_bus_get_unique_name(bus.pointer, &name))
        }
        start()
    }

    /// A server for whoever is at the other end of `socket`, which this closes.
    package convenience init(serverOn socket: CInt, answer: @escaping @Sendable (Call) -> Answer) throws {
        try self.init(answer: answer) { bus in
            var id = sd_id128_t()
            sd_id128_randomize(&id)
            try BusFailure.check(sd_bus_set_fd(bus, socket, socket))
            try BusFailure.check(sd_bus_set_server(bus, 1, id))
        }
        start()
    }

    private init(
        answer: @escaping @Sendable (Call) -> Answer,
        configure: (OpaquePointer) throws -> Void
    ) throws {
        var created: OpaquePointer?
        try BusFailure.check(sd_bus_new(&created))
        guard let opened = created else { throw BusFailure(code: ENOMEM) }
        answering = Answering(answer)
        bus = Mutex(Bus(pointer: opened))
        try configure(opened)
        let filter: sd_bus_message_handler_t = { message, context, _ in
            guard let message, let context else { return 0 }
            return Unmanaged<Answering>.fromOpaque(context).takeUnretainedValue().take(message)
        }
        let context = Unmanaged.passUnretained(answering).toOpaque()
        try BusFailure.check(sd_bus_add_filter(opened, nil, filter, context))
        try BusFailure.check(sd_bus_start(opened))
    }

    deinit {
        bus.withLock { _ = sd_bus_close_unref($0.pointer) }
        close(event)
    }

    /// Takes or gives back a name on the bus.
    package func request(name: String) throws {
        _ = try bus.withLock { try BusFailure.check(sd_bus_request_name($0.pointer, name, 0)) }
        // Calls may have come before the answer.
        wake()
    }

    package func release(name: String) {
        // A bus that has ended has taken the name already.
        _ = bus.withLock { sd_bus_release_name($0.pointer, name) }
    }

    package func signal(_ signal: Signal) throws {
        try bus.withLock { try signal.send(over: $0.pointer) }
        wake()
    }

    /// Waits for the end of the connection, by the other side unless `end` is called.
    package func hasEnded() async throws {
        try await ended.value
    }

    /// Ends the connection.
    package func end() async throws {
        isWanted.store(false, ordering: .relaxed)
        wake()
        try await ended.value
    }

    private func start() {
        Thread.detachNewThread { [self] in
            while isWanted.load(ordering: .relaxed), turn() {}
            bus.withLock { sd_bus_close($0.pointer) }
            ended.end(with: .success(()))
        }
    }

    /// Does what is to be done, and waits for more; false at the end of the connection.
    private func turn() -> Bool {
        var polled = [pollfd(), pollfd(fd: event, events: Int16(POLLIN), revents: 0)]
        let isOpen = bus.withLock { bus in
            let bus = bus.pointer
            var result = sd_bus_process(bus, nil)
            while result > 0, !answering.hangsUp { result = sd_bus_process(bus, nil) }
            polled[0] = pollfd(
                fd: sd_bus_get_fd(bus),
                events: Int16(truncatingIfNeeded: sd_bus_get_events(bus)),
                revents: 0
            )
            return result >= 0 && !answering.hangsUp
        }
        guard isOpen else { return false }
        poll(&polled, 2, 1000)
        var count: UInt64 = 0
        _ = read(event, &count, MemoryLayout.size(ofValue: count))
        return true
    }

    private func wake() {
        var one: UInt64 = 1
        _ = write(event, &one, MemoryLayout.size(ofValue: one))
    }

    /// Used under the lock of the bus.
    private final class Answering: Sendable {
        private let answer: @Sendable (Call) -> Answer
        private let isHangingUp = Atomic(false)

        init(_ answer: @escaping @Sendable (Call) -> Answer) {
            self.answer = answer
        }

        var hangsUp: Bool { isHangingUp.load(ordering: .relaxed) }

        func take(_ message: OpaquePointer) -> CInt {
            guard sd_bus_message_is_method_call(message, nil, nil) > 0, let member = sd_bus_message_get_member(message)
            else { return 0 }
            do {
                let call = Call(
                    path: sd_bus_message_get_path(message).map { String(cString: $0) } ?? "",
                    member: String(cString: member),
                    body: try BusValue.body(of: message)
                )
                var reply: OpaquePointer?
                var signal: Signal?
                let answer = answer(call)
                switch answer {
                case .values(let values), .valuesAndSignal(let values, _):
                    try BusFailure.check(sd_bus_message_new_method_return(message, &reply))
                    guard let reply else { return 0 }
                    for value in values { try value.append(to: reply) }
                    if case .valuesAndSignal(_, let behind) = answer { signal = behind }
                case .error(let name):
                    var error = sd_bus_error()
                    try name.withCString { name in
                        sd_bus_error_set(&error, name, "as the test wants it")
                        defer { sd_bus_error_free(&error) }
                        try BusFailure.check(sd_bus_message_new_method_error(message, &reply, &error))
                    }
                case .nothing: return 1
                case .hangUp:
                    isHangingUp.store(true, ordering: .relaxed)
                    return 1
                }
                defer { sd_bus_message_unref(reply) }
                try BusFailure.check(sd_bus_send(sd_bus_message_get_bus(message), reply, nil))
                try signal?.send(over: sd_bus_message_get_bus(message))
                return 1
            } catch let failure as BusFailure where [ECONNRESET, EPIPE, ENOTCONN].contains(failure.code) {
                // Who asked did not wait for it.
                isHangingUp.store(true, ordering: .relaxed)
                return 1
            } catch {
                preconditionFailure("The answer of a test could not be sent: \(error)")
            }
        }
    }
}
