import CallBasics

/// Where each port's block lies in the plan's memory.
///
/// Walks the filters in their order and hands out memory as a register allocator does: an output takes a free block
/// of its size, and the block is free again after the last filter that reads it. A filter that works in place, and is
/// the last to read its input, gets the same block as output. Unlinked optional inputs read
/// `BlockArena.silence`, or an empty batch.
struct BlockLayout {
    struct PortBlock {
        /// Where the block begins; nil for silence.
        let offset: Int?
        let frameCount: Int32
        let channelCount: Int32
    }

    /// Inputs then outputs of each filter, in the order of the filters.
    private(set) var ports: [PortBlock] = []
    private(set) var byteCount = 0

    private var free: [Int: [Int]] = [:]

    init(_ graph: Graph, order: [Filter]) throws(GraphError) {
        struct PortKey: Hashable {
            let filter: FilterID
            let port: Int
        }
        var linkInto: [PortKey: Link] = [:]
        var readers: [PortKey: Int] = [:]
        for link in graph.links {
            linkInto[PortKey(filter: link.target, port: link.input)] = link
            readers[PortKey(filter: link.source, port: link.output), default: 0] += 1
        }
        var placed: [PortKey: PortBlock] = [:]
        for filter in order {
            var release: [PortBlock] = []
            var reusable: PortBlock?
            for (index, port) in filter.description.inputs.enumerated() {
                guard let link = linkInto[PortKey(filter: filter.id, port: index)] else {
                    guard !port.isRequired else {
                        throw GraphError(
                            .unlinkedInput,
                            "\(graph.label(filter)) input \"\(port.name)\" has no link, and the filter cannot work "
                                + "without. Connect something that gives \(port.kind)."
                        )
                    }
                    ports.append(try silentBlock(port, filter, graph))
                    continue
                }
                let source = PortKey(filter: link.source, port: link.output)
                guard let block = placed[source] else { preconditionFailure("sources come first in the order") }
                ports.append(block)
                readers[source, default: 1] -= 1
                guard readers[source] == 0 else { continue }
                if index == 0, filter.description.worksInPlace { reusable = block } else { release.append(block) }
            }
            for (index, port) in filter.description.outputs.enumerated() {
                let key = PortKey(filter: filter.id, port: index)
                let shape = try Self.shape(port, filter, graph)
                let size = Self.byteCount(shape)
                if index == 0, let block = reusable, (block.frameCount, block.channelCount) == shape {
                    reusable = nil
                    placed[key] = block
                    ports.append(block)
                    if readers[key] == nil { release.append(block) }
                    continue
                }
                let offset = free[size]?.popLast() ?? claim(size)
                let block = PortBlock(offset: offset, frameCount: shape.frameCount, channelCount: shape.channelCount)
                placed[key] = block
                ports.append(block)
                if readers[key] == nil { release.append(block) }
            }
            if let reusable { release.append(reusable) }
            for block in release {
                guard let offset = block.offset else { continue }
                free[Self.byteCount((block.frameCount, block.channelCount)), default: []].append(offset)
            }
        }
    }

    private mutating func claim(_ size: Int) -> Int {
        defer { byteCount += size }
        return byteCount
    }

    private func silentBlock(_ port: Port, _ filter: Filter, _ graph: Graph) throws(GraphError) -> PortBlock {
        let shape = try Self.shape(port, filter, graph)
        precondition(Self.byteCount(shape) <= BlockArena.silenceByteCount, "a block of more than 64 KiB in one tick")
        return PortBlock(offset: nil, frameCount: shape.frameCount, channelCount: shape.channelCount)
    }

    /// Frames and channels of a port in one tick; a batch of packets has no channels.
    private static func shape(
        _ port: Port,
        _ filter: Filter,
        _ graph: Graph
    ) throws(GraphError) -> (frameCount: Int32, channelCount: Int32) {
        guard case .audio(let format) = port.kind else { return (0, 0) }
        let frameCount = format.frameCount(in: graph.tickDuration)
        guard frameCount > 0, format.channelCount > 0, format.duration(ofFrames: frameCount) == graph.tickDuration
        else {
            throw GraphError(
                .indivisibleTick,
                "\(graph.label(filter)) port \"\(port.name)\" has \(format), of which a tick of "
                    + "\(graph.tickDuration.milliseconds) ms is no whole number of frames. Resample to 48000 Hz."
            )
        }
        return (Int32(frameCount), Int32(format.channelCount))
    }

    private static func byteCount(_ shape: (frameCount: Int32, channelCount: Int32)) -> Int {
        guard shape.channelCount > 0 else { return PacketBatch.byteCount }
        return (Int(shape.frameCount) * Int(shape.channelCount) * 2 + 63) / 64 * 64
    }
}
