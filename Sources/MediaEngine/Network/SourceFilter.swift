import CallBasics
import Glibc

/// A socket filter that lets only datagrams of one source or two through: a flood of others costs nobody a system call.
///
/// The kernel runs it over each datagram, which it sees from the UDP header on, and counts what it drops.
/// Thread: any; nothing allocates.
/// Source: linux/filter.h (classic BPF); RFC 768; RFC 791, section 3.1; RFC 8200, section 3
struct SourceFilter {
    /// Instructions, each as the kernel lays it out: operation, places to jump to, operand.
    private var program = InlineArray<23, UInt64>(repeating: 0)
    private var count = 0

    /// Reads two or four bytes at a place, compares, answers how much of the datagram to keep.
    private enum Operation: UInt64 {
        case loadTwo = 0x28
        case loadFour = 0x20
        case jumpIfEqual = 0x15
        case keep = 0x06
    }

    /// Where the IP header lies, as an operand.
    private static var networkHeader: UInt32 { UInt32(bitPattern: -0x100000) }

    /// A filter for `source`, and for `other` of the same family.
    init(_ source: SocketAddress, _ other: SocketAddress? = nil) {
        keep(source)
        if let other { keep(other) }
        append(.keep, 0)
    }

    /// Keeps what `source` sends, and goes on behind that with what others send.
    private mutating func keep(_ source: SocketAddress) {
        var words = InlineArray<4, UInt32>(repeating: 0)
        let wordCount = source.isIPv4 ? 1 : 4
        if source.isIPv4 {
            words[0] = UInt32(bigEndian: source.inAddress.s_addr)
        } else {
            withUnsafeBytes(of: source.in6Address) { bytes in
                for index in 0..<wordCount {
                    words[index] = UInt32(bigEndian: bytes.load(fromByteOffset: 4 * index, as: UInt32.self))
                }
            }
        }
        append(.loadTwo, 0)
        append(.jumpIfEqual, UInt32(source.port), skippingOtherwise: 2 * wordCount + 1)
        for index in 0..<wordCount {
            append(.loadFour, Self.networkHeader &+ (source.isIPv4 ? 12 : 8) &+ UInt32(4 * index))
            append(.jumpIfEqual, words[index], skippingOtherwise: 2 * (wordCount - index) - 1)
        }
        append(.keep, .max)
    }

    private mutating func append(_ operation: Operation, _ operand: UInt32, skippingOtherwise skipped: Int = 0) {
        program[count] = operation.rawValue | UInt64(skipped) << 24 | UInt64(operand) << 32
        count += 1
    }

    /// Has a socket drop what another one drops.
    static func copy(from descriptor: Int32, to other: Int32) {
        var filter = SourceFilter()
        // The length is in instructions, and 0 without a filter.
        var length = socklen_t(filter.program.count)
        let code = withUnsafeMutablePointer(to: &filter.program) { program in
            getsockopt(descriptor, SOL_SOCKET, SO_GET_FILTER, program, &length)
        }
        guard code == 0, length > 0 else { return }
        filter.count = Int(length)
        _ = filter.attach(to: other)
    }

    private init() {}

    /// Takes the place of whatever filter the socket `descriptor` has; answers false when the kernel refuses, as for want of
    /// memory for such things (net.core.optmem_max).
    func attach(to descriptor: Int32) -> Bool {
        withUnsafePointer(to: program) { program in
            // struct sock_fprog: a count, and where the instructions are.
            var description = (UInt(count), UnsafeRawPointer(program))
            return setsockopt(
                descriptor,
                SOL_SOCKET,
                SO_ATTACH_FILTER,
                &description,
                socklen_t(MemoryLayout.size(ofValue: description))
            ) == 0
        }
    }
}
