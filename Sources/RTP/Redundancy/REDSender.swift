import CallBasics

/// Puts copies of earlier packets into the present one: audio of up to two packets before, and keys that have ended.
///
/// Audio is copied only from packets that follow each other without a pause, so that the receiver can tell their sequence
/// numbers from their timestamps. Of a telephone event only its end is repeated, since every packet of it tells all that
/// those before have told: in the packets of the keys that follow, and in the first two audio packets after it.
/// Blocks that are longer, or older, than a header can tell are left out, and the oldest ones when the payload would
/// not fit into a datagram that passes every path.
/// Shape: two copies of audio of at most 1023 bytes, and two ended events.
/// Thread: media; no method allocates.
/// Source: RFC 2198, sections 3 and 4; RFC 4733, section 2.5.1
package struct REDSender: ~Copyable {
    /// The most audio packets that can be repeated.
    package static var maximumGenerations: Int { 2 }
    /// Bytes of the largest payload.
    package static var maximumPayloadByteCount: Int { 1200 }
    /// Audio packets after a key that repeat its end.
    private static var audioPacketsWithEvent: Int { 2 }

    private struct Copy: BitwiseCopyable {
        var payloadType: UInt8 = 0
        var timestamp: UInt32 = 0
        var byteCount = 0
    }

    private struct EndedEvent: BitwiseCopyable {
        var timestamp: UInt32 = 0
        var payload = InlineArray<4, UInt8>(repeating: 0)
    }

    private let memory: UnsafeMutablePointer<UInt8>
    /// The newest first; copy n lies in slot `(newestSlot + n) % 2`.
    private var copies = InlineArray<2, Copy>(repeating: Copy())
    private var copyCount = 0
    private var newestSlot = 0
    /// Clock-rate units from one packet to the next; 0 while unknown.
    private var step: UInt32 = 0
    /// The newest first.
    private var events = InlineArray<2, EndedEvent>(repeating: EndedEvent())
    private var eventCount = 0
    private var audioPacketsToGo = 0

    /// A sender that remembers nothing yet.
    package init() {
        memory = .allocate(capacity: Self.maximumGenerations * REDPayload.maximumBlockByteCount)
    }

    deinit {
        memory.deallocate()
    }

    /// Writes the payload that carries an audio packet and copies of up to `generations` packets before it.
    ///
    /// - Returns: Its byte count; 0 when there is nothing to repeat, so that the packet is to be sent as it is.
    package mutating func pack(
        _ header: PayloadHeader,
        payload: Span<UInt8>,
        generations: Int,
        eventPayloadType: UInt8?,
        into bytes: inout MutableSpan<UInt8>
    ) -> Int {
        forgetBroken(before: header)
        var room = min(bytes.count, Self.maximumPayloadByteCount) &- payload.count &- REDPayload.primaryHeaderByteCount
        var audioCount = 0
        while audioCount < min(generations, copyCount),
            takesRoom(copies[audioCount].byteCount, age: header.timestamp &- copies[audioCount].timestamp, &room)
        {
            audioCount &+= 1
        }
        var writer = Writer()
        if let eventPayloadType, audioPacketsToGo > 0, eventCount > 0 {
            audioPacketsToGo &-= 1
            let event = events[0]
            let age = header.timestamp &- event.timestamp
            if takesRoom(TelephoneEvent.byteCount, age: age, &room) {
                writer.add(eventPayloadType, age, event.payload.span, at: &bytes, blockCount: audioCount &+ 1)
            }
        }
        // Oldest first.
        var index = audioCount
        while index > 0 {
            index &-= 1
            let copy = copies[index]
            let start = memory + (newestSlot &+ index) % 2 &* REDPayload.maximumBlockByteCount
            let content = UnsafeBufferPointer(start: start, count: copy.byteCount).span
            let age = header.timestamp &- copy.timestamp
            writer.add(copy.payloadType, age, content, at: &bytes, blockCount: audioCount)
        }
        remember(header, payload)
        return writer.finish(header.payloadType, payload, &bytes)
    }

    /// Writes the payload that carries a telephone event and the ends of up to two before it.
    ///
    /// - Returns: Its byte count; 0 when there is nothing to repeat, so that the packet is to be sent as it is.
    package mutating func pack(
        _ packet: TelephoneEventSender.Packet,
        payload: Span<UInt8>,
        payloadType: UInt8,
        into bytes: inout MutableSpan<UInt8>
    ) -> Int {
        // Audio before the event is no neighbour of audio after it.
        copyCount = 0
        var count = 0
        // The event's own end, when it is repeated, is the newest one that is remembered.
        let first = eventCount > 0 && events[0].timestamp == packet.timestamp ? 1 : 0
        var room = min(bytes.count, Self.maximumPayloadByteCount)
        while first &+ count < eventCount,
            takesRoom(TelephoneEvent.byteCount, age: packet.timestamp &- events[first &+ count].timestamp, &room)
        {
            count &+= 1
        }
        var writer = Writer()
        var index = first &+ count
        while index > first {
            index &-= 1
            let event = events[index]
            writer.add(
                payloadType,
                packet.timestamp &- event.timestamp,
                event.payload.span,
                at: &bytes,
                blockCount: count
            )
        }
        if packet.event.isEnd { rememberEnd(packet, payload) }
        return writer.finish(payloadType, payload, &bytes)
    }

    /// Forgets the ends of keys: what comes lies on another time line, from which they cannot be told.
    package mutating func forgetEvents() { eventCount = 0 }

    /// Forgets the copies when `header` does not continue them.
    private mutating func forgetBroken(before header: PayloadHeader) {
        guard copyCount > 0 else { return }
        let distance = header.timestamp &- copies[0].timestamp
        if header.isMarked || step != 0 && distance != step { copyCount = 0 }
        if !header.isMarked { step = distance }
    }

    private mutating func remember(_ header: PayloadHeader, _ payload: Span<UInt8>) {
        guard payload.count <= REDPayload.maximumBlockByteCount else {
            copyCount = 0
            return
        }
        newestSlot = (newestSlot &+ 1) % 2
        let target = memory + newestSlot &* REDPayload.maximumBlockByteCount
        payload.withUnsafeBufferPointer { source in
            guard let start = source.baseAddress else { return }
            target.update(from: start, count: source.count)
        }
        copies[1] = copies[0]
        copies[0] = Copy(
            payloadType: header.payloadType,
            timestamp: header.timestamp,
            byteCount: payload.count
        )
        copyCount = min(copyCount &+ 1, Self.maximumGenerations)
    }

    private mutating func rememberEnd(_ packet: TelephoneEventSender.Packet, _ payload: Span<UInt8>) {
        audioPacketsToGo = Self.audioPacketsWithEvent
        if eventCount == 0 || events[0].timestamp != packet.timestamp {
            events[1] = events[0]
            eventCount = min(eventCount &+ 1, 2)
        }
        events[0].timestamp = packet.timestamp
        for index in 0..<min(payload.count, TelephoneEvent.byteCount) { events[0].payload[index] = payload[index] }
    }

    /// Whether a block can be told of and fits; it is then taken from `room`.
    private func takesRoom(_ byteCount: Int, age: UInt32, _ room: inout Int) -> Bool {
        let needed = byteCount &+ REDPayload.redundantHeaderByteCount
        guard age > 0, age <= UInt32(REDPayload.maximumTimestampOffset), needed <= room else { return false }
        room &-= needed
        return true
    }

    /// Where the next header and the next block go.
    private struct Writer {
        private var headerEnd = 0
        private var contentEnd = 0

        mutating func add(
            _ payloadType: UInt8,
            _ age: UInt32,
            _ content: Span<UInt8>,
            at bytes: inout MutableSpan<UInt8>,
            blockCount: Int
        ) {
            if headerEnd == 0 {
                contentEnd = blockCount &* REDPayload.redundantHeaderByteCount &+ REDPayload.primaryHeaderByteCount
            }
            REDPayload.writeRedundantHeader(
                payloadType: payloadType,
                timestampOffset: UInt16(truncatingIfNeeded: age),
                byteCount: content.count,
                to: &bytes,
                at: headerEnd
            )
            headerEnd &+= REDPayload.redundantHeaderByteCount
            bytes.store(content, at: contentEnd)
            contentEnd &+= content.count
        }

        /// Writes the primary block; answers 0 when no block came before.
        func finish(_ payloadType: UInt8, _ content: Span<UInt8>, _ bytes: inout MutableSpan<UInt8>) -> Int {
            guard headerEnd > 0 else { return 0 }
            bytes[headerEnd] = payloadType & 0x7F
            bytes.store(content, at: contentEnd)
            return contentEnd &+ content.count
        }
    }
}
