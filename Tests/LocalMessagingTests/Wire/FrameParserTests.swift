import NIOCore
import Testing

@testable import LocalMessaging

struct FrameParserTests {
    /// One of each shape: without and with a type, topic, payload, blob, descriptors.
    private static let frames: [Frame] = {
        var withBlob = Frame(
            .message,
            correlation: .max,
            type: MessageType(name: "n"),
            payload: ByteBuffer(string: "{}")
        )
        withBlob.blob = ByteBuffer(bytes: [0, 1, 2, 255])
        var sealed = Frame(.reply, correlation: 7, payload: ByteBuffer(string: "1"))
        (sealed.fileCount, sealed.hasSealedBlob) = (2, true)
        let type = MessageType(name: String(repeating: "ä", count: 64), version: .max)
        return [
            Frame(.goodbye),
            Frame(.request, correlation: 1, type: type, topic: String(repeating: "t", count: 255)),
            withBlob,
            Frame(.subscribe, topic: "*"),
            sealed,
            Frame(.message, type: MessageType(name: "test.note"), topic: "é", payload: ByteBuffer(string: "[1,2]")),
        ]
    }()

    private static let stream = bytes(of: frames)

    private static func bytes(of frames: [Frame]) -> ByteBuffer {
        var stream = ByteBuffer()
        for frame in frames {
            stream.writeImmutableBuffer(frame.serialized(with: ByteBufferAllocator()))
            stream.writeImmutableBuffer(frame.blob)
        }
        return stream
    }

    /// Everything that a frame says.
    private static func text(_ frame: Frame) -> String {
        "\(frame.kind) \(frame.correlation) \(frame.type?.description ?? "-") \(frame.topic) \(Array(frame.payload.readableBytesView)) "
            + "\(Array(frame.blob.readableBytesView)) \(frame.fileCount) \(frame.hasSealedBlob)"
    }

    private static func parse(_ chunks: [ByteBuffer], maximum: Int = 1 << 20) throws(FrameParser.Failure) -> [Frame] {
        var parser = FrameParser(maximumByteCount: maximum)
        var frames: [Frame] = []
        for chunk in chunks {
            parser.append(chunk)
            while let frame = try parser.next() { frames.append(frame) }
        }
        return frames
    }

    private static func slice(_ range: Range<Int>) throws -> ByteBuffer {
        try #require(stream.getSlice(at: range.lowerBound, length: range.count))
    }

    @Test func `a stream cut at any place gives the same frames`() throws {
        let (count, expected) = (Self.stream.readableBytes, Self.frames.map(Self.text))
        for cut in 0...count {
            let chunks = [try Self.slice(0..<cut), try Self.slice(cut..<count)]
            try #require(try Self.parse(chunks).map(Self.text) == expected, "cut at \(cut)")
        }
    }

    @Test func `a stream cut at any two places gives the same frames`() throws {
        let frames = [Self.frames[0], Self.frames[2], Self.frames[3]]
        let (stream, expected) = (Self.bytes(of: frames), frames.map(Self.text))
        for first in 0...stream.readableBytes {
            for second in first...stream.readableBytes {
                var rest = stream
                let chunks = [rest.readSlice(length: first), rest.readSlice(length: second - first), rest]
                try #require(
                    try Self.parse(chunks.compactMap(\.self)).map(Self.text) == expected,
                    "cut at \(first) and \(second)"
                )
            }
        }
    }

    @Test(arguments: [1, 2, 3, 5, 24, 25, 64, 1000]) func `chunks of any size give the same frames`(size: Int) throws {
        let count = Self.stream.readableBytes
        let chunks = try stride(from: 0, to: count, by: size).map { try Self.slice($0..<min($0 + size, count)) }
        #expect(try Self.parse(chunks).map(Self.text) == Self.frames.map(Self.text))
    }

    @Test func `any number of frames in one read are all given`() throws {
        for count in 1...50 {
            let frames = (0..<count).map { Self.frames[$0 % Self.frames.count] }
            #expect(try Self.parse([Self.bytes(of: frames)]).map(Self.text) == frames.map(Self.text))
        }
    }

    @Test func `a prefix of a stream gives the frames that are whole in it, and no error`() throws {
        var ends: [Int] = []
        for frame in Self.frames { ends.append((ends.last ?? 0) + 4 + frame.length) }
        for count in 0...Self.stream.readableBytes {
            #expect(try Self.parse([try Self.slice(0..<count)]).count == ends.count { $0 <= count })
        }
    }

    @Test func `random bytes are refused or waited for, and never trap`() {
        var generator = SplitMix64(seed: 4)
        var refusedCount = 0
        for _ in 0..<20_000 {
            var bytes = ByteBuffer(
                bytes: (0..<Int.random(in: 0..<80, using: &generator)).map { _ in
                    UInt8.random(in: 0...255, using: &generator)
                }
            )
            // Most with a length and a version that are right, so that what follows is looked at.
            if Bool.random(using: &generator), bytes.readableBytes > 5 {
                bytes.setInteger(UInt32(bytes.readableBytes - 4), at: 0)
                bytes.setInteger(Frame.version, at: 4)
            }
            do throws(FrameParser.Failure) {
                _ = try Self.parse([bytes], maximum: 4096)
            } catch {
                refusedCount += 1
            }
        }
        #expect(refusedCount > 10_000)
    }

    @Test func `any changed byte of a valid stream does not trap`() throws {
        for index in 0..<Self.stream.readableBytes {
            for value: UInt8 in [0, 1, 0x7F, 0x80, 0xFF] {
                var changed = Self.stream
                changed.setInteger(value, at: index)
                _ = try? Self.parse([changed], maximum: 4096)
            }
        }
    }

    @Test func `a length beyond the limit is refused on its four bytes, before anything is kept for it`() {
        for length in [UInt32(101), 1 << 31, .max] {
            #expect(throws: FrameParser.Failure.tooLarge(byteCount: Int(length), limit: 100)) {
                try Self.parse([ByteBuffer(integer: length)], maximum: 100)
            }
        }
    }

    @Test func `a length that cannot hold a header is refused`() {
        for length in UInt32(0)..<20 {
            var bytes = ByteBuffer(integer: length)
            bytes.writeInteger(Frame.version)
            #expect(throws: FrameParser.Failure.self) { try Self.parse([bytes]) }
        }
    }

    @Test(arguments: [0, 1, 19, 20, 101] as [UInt32], [0, 1, 2] as [UInt8])
    func `a beginning is refused for the same reason, at once or byte by byte`(length: UInt32, version: UInt8) {
        var bytes = ByteBuffer(integer: length)
        bytes.writeRepeatingByte(version, count: 30)
        let pieces = bytes.readableBytesView.map { ByteBuffer(bytes: [$0]) }
        func refusal(_ chunks: [ByteBuffer]) -> FrameParser.Failure? {
            do { _ = try Self.parse(chunks, maximum: 100) } catch { return error }
            return nil
        }
        let whole = refusal([bytes])
        #expect(whole != nil)
        #expect(refusal(pieces) == whole)
    }

    @Test func `another version is told by its number, on its fifth byte`() {
        var bytes = ByteBuffer(integer: UInt32(20))
        bytes.writeInteger(UInt8(2))
        #expect(throws: FrameParser.Failure.version(2)) { try Self.parse([bytes]) }
    }

    @Test(arguments: [0, 14, 255] as [UInt8]) func `an unknown kind is refused`(kind: UInt8) {
        #expect(throws: FrameParser.Failure.malformed("a frame of kind \(kind).")) {
            try Self.parse([Self.changed(Frame(.goodbye), at: 5, to: kind)])
        }
    }

    @Test func `names that are not UTF-8 are refused`() {
        let frame = Frame(.message, type: MessageType(name: "n"), topic: "t")
        for offset in [24, 25] {
            #expect(throws: FrameParser.Failure.malformed("a name that is not UTF-8.")) {
                try Self.parse([Self.changed(frame, at: offset, to: 0xFF)])
            }
        }
    }

    @Test func `parts that are longer than their frame are refused`() {
        let frame = Frame(.message, type: MessageType(name: "n"), topic: "t", payload: ByteBuffer(string: "1"))
        for offset in [6, 18, 20] {
            #expect(throws: FrameParser.Failure.malformed("a frame whose parts are longer than itself.")) {
                try Self.parse([Self.changed(frame, at: offset, to: 100)])
            }
        }
    }

    @Test func `a type's name of more than 128 bytes is refused`() {
        var frame = Frame(.message)
        frame.type = MessageType(received: String(repeating: "n", count: 129), version: 1)
        #expect(throws: FrameParser.Failure.malformed("a type's name of 129 bytes.")) {
            try Self.parse([Self.bytes(of: [frame])])
        }
    }

    @Test func `a blob as memory needs a descriptor and no bytes`() {
        var without = Frame(.message)
        without.hasSealedBlob = true
        var with = without
        with.fileCount = 1
        with.blob = ByteBuffer(bytes: [1])
        for frame in [without, with] {
            #expect(throws: FrameParser.Failure.malformed("a blob as memory without a descriptor.")) {
                try Self.parse([Self.bytes(of: [frame])])
            }
        }
    }

    private static func changed(_ frame: Frame, at offset: Int, to value: UInt8) -> ByteBuffer {
        var bytes = bytes(of: [frame])
        bytes.setInteger(value, at: offset)
        return bytes
    }
}
