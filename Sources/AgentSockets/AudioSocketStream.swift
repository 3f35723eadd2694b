internal import NIOCore

/// Cuts a stream of AudioSocket into its messages; half a one at the end is dropped.
///
///      0        1        2        3
///     ┌────────┬─────────────────┬──────────────
///     │  kind  │ length, big end │ payload ...
///     └────────┴─────────────────┴──────────────
///
struct AudioSocketMessageDecoder: ByteToMessageDecoder {
    typealias InboundOut = AgentFrame

    mutating func decode(context: ChannelHandlerContext, buffer: inout ByteBuffer) throws -> DecodingState {
        guard let length = buffer.getInteger(at: buffer.readerIndex + 1, as: UInt16.self),
            let message = buffer.readBytes(length: 3 + Int(length))
        else { return .needMoreData }
        context.fireChannelRead(Self.wrapInboundOut(.binary(message)))
        return .continue
    }

    mutating func decodeLast(
        context: ChannelHandlerContext,
        buffer: inout ByteBuffer,
        seenEOF _: Bool
    ) throws -> DecodingState {
        while try decode(context: context, buffer: &buffer) == .continue {}
        buffer.moveReaderIndex(to: buffer.writerIndex)
        return .needMoreData
    }
}

/// Writes messages of AudioSocket, which have their heads.
struct AudioSocketMessageEncoder: MessageToByteEncoder {
    typealias OutboundIn = AgentFrame

    func encode(data: AgentFrame, out: inout ByteBuffer) throws {
        switch data {
        case .text(let bytes), .binary(let bytes): out.writeBytes(bytes)
        }
    }
}
