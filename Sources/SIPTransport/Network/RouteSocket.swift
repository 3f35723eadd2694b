internal import Glibc

/// A socket by which the kernel tells of the network of the machine, and is asked for it (netlink(7)).
final class RouteSocket: Sendable {
    /// Groups of messages, by their bits (linux/rtnetlink.h, `RTMGRP_LINK` and others).
    struct Groups: OptionSet {
        let rawValue: UInt32

        static let link = Groups(rawValue: 1)
        static let ipv4Address = Groups(rawValue: 0x10)
        static let ipv4Route = Groups(rawValue: 0x40)
        static let ipv4Rule = Groups(rawValue: 0x80)
        static let ipv6Address = Groups(rawValue: 0x100)
        static let ipv6Route = Groups(rawValue: 0x400)
        static let ipv6Rule = Groups(rawValue: 1 << 18)
        static let all: Groups = [.link, .ipv4Address, .ipv4Route, .ipv4Rule, .ipv6Address, .ipv6Route, .ipv6Rule]
    }

    /// What one look at the socket gave.
    enum Received {
        case messages([RouteMessage])
        case nothing
        /// Nothing will come any more.
        case failed(Int32)
    }

    /// `struct sockaddr_nl` of linux/netlink.h.
    private struct Address {
        var family = UInt16(AF_NETLINK)
        var padding: UInt16 = 0
        /// 0 is the kernel.
        var port: UInt32 = 0
        var groups: UInt32 = 0
    }

    /// Room for what the kernel puts into one datagram; it fills no more than 32 KiB.
    static let byteCount = 1 << 16

    let descriptor: CInt

    /// A socket that never blocks; with no groups it only answers.
    ///
    /// - Throws: `unavailable` when the kernel does not give one.
    init(_ groups: Groups = []) throws(NetworkWatchError) {
        let type = CInt(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        // NETLINK_ROUTE of linux/netlink.h is 0.
        descriptor = socket(AF_NETLINK, type, 0)
        guard descriptor >= 0 else { throw NetworkWatchError(errno) }
        var address = Address()
        address.groups = groups.rawValue
        let descriptor = descriptor
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<Address>.size))
            }
        }
        guard status == 0 else { throw NetworkWatchError(errno) }
    }

    deinit {
        // A socket that was refused was never open.
        if descriptor >= 0 { close(descriptor) }
    }

    /// Asks the kernel, whose answer is there when this returns; whether it took the question.
    func ask(_ question: [UInt8]) -> Bool {
        var kernel = Address()
        let descriptor = descriptor
        let count = withUnsafePointer(to: &kernel) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(descriptor, question, question.count, 0, $0, socklen_t(MemoryLayout<Address>.size))
            }
        }
        return count == question.count
    }

    /// Takes one datagram, by a buffer of `byteCount`; what is not the kernel's is passed over.
    func receive(_ buffer: inout [UInt8]) -> Received {
        var sender = Address()
        var length = socklen_t(MemoryLayout<Address>.size)
        let descriptor = descriptor
        let count = withUnsafeMutablePointer(to: &sender) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                // With this flag the count is that of the datagram, however much of it there is room for.
                recvfrom(descriptor, &buffer, buffer.count, CInt(MSG_TRUNC), $0, &length)
            }
        }
        guard count >= 0 else {
            switch errno {
            case EAGAIN: return .nothing
            case EINTR: return .messages([])
            case ENOBUFS: return .messages([.overrun])
            default: return .failed(errno)
            }
        }
        guard length == socklen_t(MemoryLayout<Address>.size), sender.port == 0 else { return .messages([]) }
        guard count <= buffer.count else { return .messages([.overrun]) }
        return .messages(RouteMessageReader.messages(in: Array(buffer[..<count])))
    }
}
