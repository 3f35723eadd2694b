import CLinux
import Glibc
import TestSupport
import Testing

@testable import LocalMessaging

/// Memory that nobody can change any more; counts what the process has open, so nothing else may run.
@Suite(.serialized, .timeLimit(.minutes(1)), .tags(.realtime), .onSteadyMachine)
struct SealedMemoryRealTimeTests {
    @Test(arguments: [0, 1, 4095, 4096, 4097, 16 << 20]) func `memory of any size arrives as it was written`(count: Int)
        throws
    {
        let made = try SealedMemory(count: count) { bytes in
            for index in stride(from: 0, to: count, by: 997) { bytes[index] = UInt8(truncatingIfNeeded: index) }
        }
        let mapped = try SealedMemory(mapping: made.file, maximumByteCount: count)
        #expect(mapped.count == count)
        let isSame = mapped.withUnsafeBytes { bytes in
            bytes.count == count
                && stride(from: 0, to: count, by: 997).allSatisfy { bytes[$0] == UInt8(truncatingIfNeeded: $0) }
        }
        #expect(isSame)
    }

    @Test func `nobody can write to it, cut it, or let it grow`() throws {
        let memory = try SealedMemory(count: 100) { _ in }
        let descriptor = memory.file.descriptor
        #expect(write(descriptor, "x", 1) == -1)
        #expect(ftruncate(descriptor, 10) == -1)
        #expect(ftruncate(descriptor, 1000) == -1)
        #expect(mmap(nil, 100, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0) == MAP_FAILED)
    }

    @Test func `memory that its sender can still change is refused`() throws {
        let descriptor = linux_memory_descriptor("test")
        try #require(descriptor >= 0 && ftruncate(descriptor, 100) == 0)
        let file = OpenFile(owning: descriptor)
        #expect(throws: MessagingError.attachments("a blob whose memory is not sealed.")) {
            try SealedMemory(mapping: file, maximumByteCount: 1000)
        }
    }

    @Test func `what is no memory is refused`() throws {
        let file = try OpenFile(readingFrom: "/dev/null")
        #expect(throws: MessagingError.attachments("a blob whose memory is not sealed.")) {
            try SealedMemory(mapping: file, maximumByteCount: 1000)
        }
    }

    @Test func `more than the limit is refused before it is mapped`() throws {
        let memory = try SealedMemory(count: 101) { _ in }
        #expect(throws: MessagingError.attachments("a blob of 101 bytes; 100 are accepted.")) {
            try SealedMemory(mapping: memory.file, maximumByteCount: 100)
        }
    }

    @Test func `an error of what fills it comes through, and the descriptor is closed`() throws {
        struct Failure: Error {}
        let before = try openDescriptorCount()
        for _ in 0..<10 {
            #expect(throws: Failure.self) { try SealedMemory(count: 100) { _ in throw Failure() } }
        }
        #expect(try openDescriptorCount() < before + 10)
    }

    @Test func `a blob that is sealed memory is sent as it is, another is copied into such memory`() throws {
        let memory = try SealedMemory(count: 10) { _ in }
        #expect(try Blob(memory).sealed() === memory)
        let copied = try Blob([1, 2, 3]).sealed()
        #expect(copied.withUnsafeBytes { Array($0) } == [1, 2, 3])
        #expect(Blob(copied).count == 3)
    }
}
