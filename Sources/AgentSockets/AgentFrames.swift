/// What an agent sends, in order, for one reader; it ends with the connection.
///
/// A reader that is cancelled gets nil, and loses nothing that another reads later.
package struct AgentFrames: AsyncSequence, Sendable {
    package typealias Element = AgentFrame
    package typealias Failure = Never

    private let state: ConnectionState

    init(_ state: ConnectionState) { self.state = state }

    package func makeAsyncIterator() -> Iterator { Iterator(state: state) }

    package struct Iterator: AsyncIteratorProtocol {
        fileprivate let state: ConnectionState

        package mutating func next() async -> AgentFrame? { await state.next(isolation: nil) }

        package mutating func next(isolation actor: isolated (any Actor)?) async throws(Never) -> AgentFrame? {
            await state.next(isolation: actor)
        }
    }
}
